"""Distributions that reinforcement learning draws from (torch.distributions): Bernoulli, Categorical, Normal."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Sequence, Tuple, Union

import onestep
from onestep import _C
from onestep._missing import module_getattr

Tensor = _C.Tensor
Number = Union[Tensor, float]

__getattr__ = module_getattr("torch.distributions")


def _pair(a: Number, b: Optional[Number]) -> Tuple[Tensor, Tensor]:
    """Both as tensors of one shape."""
    first = a if isinstance(a, Tensor) else onestep.tensor(float(a))
    second = b if isinstance(b, Tensor) else onestep.tensor(float(b if b is not None else 0.0))
    together = onestep.broadcast_tensors(first, second)
    return together[0], together[1]


class Distribution:
    """A distribution over values of event_shape, one for each of batch_shape."""

    def __init__(self, batch_shape: Sequence[int], event_shape: Sequence[int] = (), validate_args: Any = None) -> None:
        self.batch_shape, self.event_shape = _C.Size(batch_shape), _C.Size(event_shape)
        self._validates = validate_args is not False

    def _require(self, what: str, value: Tensor, good: Callable[[Tensor], Tensor], wanted: str) -> None:
        """Refuses a parameter or a value that is not good everywhere, NaN above all."""
        if self._validates and not bool(good(value).all()):
            raise ValueError(
                f"Expected {what} (Tensor of shape {tuple(value.shape)}) of distribution {type(self).__name__} to be {wanted}, "
                f"but found invalid values:\n{value}"
            )

    def _shape(self, sample_shape: Sequence[int]) -> Any:
        return _C.Size([*sample_shape, *self.batch_shape, *self.event_shape])

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws through which gradients flow to the parameters."""
        raise NotImplementedError(f"{type(self).__name__}.rsample: its draws have no gradient")

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws of shape sample_shape + batch_shape + event_shape, without gradients."""
        with onestep.no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability, or its density, at `value`."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()  # type: ignore[attr-defined]


def _one_of(probs: Optional[Any], logits: Optional[Any]) -> Tensor:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    given: Any = logits if probs is None else probs
    return given if isinstance(given, Tensor) else onestep.tensor(float(given))


class Categorical(Distribution):
    """0 .. K - 1, by probs [..., K] (which are divided by their sum) or logits."""

    def __init__(self, probs: Optional[Tensor] = None, logits: Optional[Tensor] = None, validate_args: Any = None) -> None:
        given = _one_of(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{'probs' if logits is None else 'logits'}` parameter must be at least one-dimensional.")
        if logits is None:
            self.probs = given / given.sum(-1, keepdim=True)
            eps = onestep.finfo(self.probs.dtype).eps
            self.logits = self.probs.clamp(min=eps, max=1 - eps).log()
        else:
            self.logits = given - given.logsumexp(dim=-1, keepdim=True)
            self.probs = onestep.softmax(self.logits, dim=-1)
        super().__init__(given.shape[:-1], validate_args=validate_args)
        what = "parameter probs" if logits is None else "parameter logits"
        self._require(what, given, lambda _: self.probs >= 0, "no NaN, nor negative as probs")

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        rows = self.probs.detach().reshape(-1, self.probs.shape[-1])
        count = math.prod(sample_shape)
        return onestep.multinomial(rows, count, True).T.reshape(self._shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        count = self.logits.shape[-1]
        self._require("value", value, lambda v: (v == v.long()) & (v >= 0) & (v < count), f"a whole number below {count}")
        index, logits = onestep.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        """-sum p log p"""
        least = self.logits.clamp(min=onestep.finfo(self.logits.dtype).min)
        return -(least * self.probs).sum(-1)


class Bernoulli(Distribution):
    """1 with probability probs, else 0; or by logits."""

    def __init__(self, probs: Optional[Number] = None, logits: Optional[Number] = None, validate_args: Any = None) -> None:
        given = _one_of(probs, logits)
        eps = onestep.finfo(given.dtype).eps
        if logits is None:
            self.probs = given
            inside = given.clamp(min=eps, max=1 - eps)
            self.logits = inside.log() - (-inside).log1p()
        else:
            self.logits, self.probs = given, onestep.sigmoid(given)
        super().__init__(given.shape, validate_args=validate_args)
        what = "parameter probs" if logits is None else "parameter logits"
        self._require(what, given, lambda _: (self.probs >= 0) & (self.probs <= 1), "no NaN, and from 0 to 1 as probs")

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return onestep.bernoulli(self.probs.detach().expand(self._shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, lambda v: (v == 0) | (v == 1), "0 or 1")
        logits, value = onestep.broadcast_tensors(self.logits, value)
        return -onestep.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """-p log p - (1 - p) log(1 - p)"""
        return onestep.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


class Normal(Distribution):
    """exp(-(x - loc)^2 / (2 scale^2)) / (scale sqrt(2 pi))"""

    def __init__(self, loc: Number, scale: Number, validate_args: Any = None) -> None:
        self.loc, self.scale = _pair(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
        self._require("parameter loc", self.loc, lambda v: v == v, "no NaN")
        self._require("parameter scale", self.scale, lambda v: v > 0, "above 0")

    mean = property(lambda self: self.loc)
    variance = property(lambda self: self.scale.pow(2))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._shape(sample_shape)
        with onestep.no_grad():
            return onestep.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + onestep.randn(self._shape(sample_shape), dtype=self.loc.dtype) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, lambda v: v == v, "no NaN")
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def entropy(self) -> Tensor:
        """1/2 + log(2 pi) / 2 + log(scale)"""
        return 0.5 + 0.5 * math.log(2 * math.pi) + onestep.log(self.scale)
