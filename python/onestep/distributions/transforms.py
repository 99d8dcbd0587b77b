"""Functions with an inverse, of what a distribution draws (torch.distributions.transforms)."""

from __future__ import annotations

import copy
import math
from typing import Any, Sequence, Tuple

import onestep
from onestep.distributions.distribution import Number, Tensor

softplus = onestep.nn.functional.softplus


class Transform:
    """y = t(x), element by element; t.inv is its inverse. With cache_size=1 the inverse of the last y is the x that it came from."""

    bijective = True
    #: Whether y grows with x (1) or falls (-1).
    sign: Any = 1

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size, self._last = cache_size, (None, None)  # type: Tuple[int, Tuple[Any, Any]]

    @property
    def inv(self) -> "Transform":
        return _Inverse(self)

    def with_cache(self, cache_size: int = 1) -> "Transform":
        other = copy.copy(self)
        Transform.__init__(other, cache_size)
        return other

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size and x is self._last[0]:
            return self._last[1]
        y = self._call(x)
        self._last = (x, y) if self._cache_size else self._last
        return y

    def _inverse_of(self, y: Tensor) -> Tensor:
        if self._cache_size and y is self._last[1]:
            return self._last[0]
        x = self._inverse(y)
        self._last = (x, y) if self._cache_size else self._last
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy / dx|"""
        raise NotImplementedError

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Of y for x of this shape: that of x, and of the parameters."""
        return shape

    def __eq__(self, other: object) -> bool:
        return self is other or type(self) is type(other) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(type(self))

    def _key(self) -> Tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    def __init__(self, of: Transform) -> None:
        super().__init__()
        self._of = of

    bijective = property(lambda self: self._of.bijective)  # type: ignore[assignment]
    sign = property(lambda self: self._of.sign)
    inv = property(lambda self: self._of)

    def __call__(self, x: Tensor) -> Tensor:
        return self._of._inverse_of(x)

    def _inverse_of(self, y: Tensor) -> Tensor:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._of.forward_shape(shape)

    def _key(self) -> Tuple[Any, ...]:
        return (self._of,)

    def __repr__(self) -> str:
        return f"Inverse({self._of})"


class ComposeTransform(Transform):
    """The transforms one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)

    bijective = property(lambda self: all(part.bijective for part in self.parts))  # type: ignore[assignment]
    sign = property(lambda self: math.prod(part.sign for part in self.parts))

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inverse_of(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total = onestep.zeros_like(x)
        for part in self.parts:
            after = part(x)
            total, x = total + part.log_abs_det_jacobian(x, after), after
        return total

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def _key(self) -> Tuple[Any, ...]:
        return tuple(self.parts)


class ExpTransform(Transform):
    """exp(x)"""

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class AffineTransform(Transform):
    """loc + scale x"""

    def __init__(self, loc: Number, scale: Number, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        if event_dim:
            raise NotImplementedError("torch.distributions.AffineTransform(event_dim=...): not in onestep (use Independent)")
        self.loc, self.scale = loc, scale

    @property
    def sign(self) -> Any:  # type: ignore[override]
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            return onestep.broadcast_tensors(self.scale.abs().log(), x)[0]
        return onestep.full_like(x, math.log(abs(self.scale)))

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return onestep.broadcast_shapes(shape, *(v.shape for v in (self.loc, self.scale) if isinstance(v, Tensor)))

    def _key(self) -> Tuple[Any, ...]:
        return tuple(v.tolist() if isinstance(v, Tensor) else v for v in (self.loc, self.scale))


class PowerTransform(Transform):
    """x^exponent of positive x"""

    def __init__(self, exponent: Number, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else onestep.tensor(float(exponent))

    sign = property(lambda self: self.exponent.sign())

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return onestep.broadcast_shapes(shape, self.exponent.shape)

    def _key(self) -> Tuple[Any, ...]:
        return (self.exponent.tolist(),)


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))"""

    def _call(self, x: Tensor) -> Tensor:
        limits = onestep.finfo(x.dtype)
        return onestep.sigmoid(x).clamp(min=limits.tiny, max=1.0 - limits.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = onestep.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """tanh(x)"""

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return onestep.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """In terms of x, where 1 - tanh(x)^2 would round to 0"""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class SoftplusTransform(Transform):
    """log(1 + exp(x))"""

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class AbsTransform(Transform):
    """|x|, which has no single inverse"""

    bijective = False

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


def composed(transforms: Any) -> list:
    """A list of transforms, or one."""
    parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
    if not all(isinstance(part, Transform) for part in parts):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    return parts
