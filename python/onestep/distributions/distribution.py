"""What all distributions have (torch.distributions.distribution), and Independent."""

from __future__ import annotations

import copy
import math
from typing import Any, Callable, Sequence, Tuple

import onestep
from onestep import _C
from onestep._C import Tensor
from onestep.distributions.constraints import Number, positive, real


def together(*values: Number) -> Tuple[Tensor, ...]:
    """Tensors of one shape; numbers become tensors of the others' dtype."""
    dtype = next((value.dtype for value in values if isinstance(value, Tensor)), None)
    tensors = [value if isinstance(value, Tensor) else onestep.tensor(float(value), dtype=dtype) for value in values]
    return tuple(onestep.broadcast_tensors(*tensors))


def sum_last(x: Tensor, dims: int) -> Tensor:
    """The sum over the last dims."""
    return x.sum(tuple(range(-dims, 0))) if dims else x


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities that are neither 0 nor 1."""
    eps = onestep.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


class Distribution:
    """A distribution over values of event_shape, one for each of batch_shape."""

    has_rsample = False
    has_enumerate_support = False
    #: Attributes of shape [batch_shape..., rest...].
    _parameters: Tuple[str, ...] = ()

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: Any = None
    ) -> None:
        self.batch_shape, self.event_shape = _C.Size(batch_shape), _C.Size(event_shape)
        self._validates = validate_args is not False

    def _require(self, what: str, value: Tensor, good: Callable[[Tensor], Tensor], wanted: str) -> None:
        """Refuses a parameter or a value that is not good everywhere, NaN above all."""
        if self._validates and not bool(good(value).all()):
            raise ValueError(
                f"Expected {what} (Tensor of shape {tuple(value.shape)}) of distribution {type(self).__name__} to be {wanted}, "
                f"but found invalid values:\n{value}"
            )

    def _require_positive(self) -> None:
        """All parameters."""
        for name in self._parameters:
            self._require(f"parameter {name}", getattr(self, name), positive.check, "above 0")

    def _require_real(self, value: Tensor) -> None:
        self._require("value", value, real.check, "no NaN")

    def _missing(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__}.{what}: not in onestep, or it has none")

    def _shape(self, sample_shape: Sequence[int]) -> Any:
        return _C.Size([*sample_shape, *self.batch_shape, *self.event_shape])

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same for a larger batch shape; nothing is copied."""
        other = copy.copy(self)
        for name in self._parameters:
            value = getattr(self, name)
            setattr(other, name, value.expand([*batch_shape, *value.shape[len(self.batch_shape) :]]))
        other.batch_shape = _C.Size(batch_shape)
        return other

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws through which gradients flow to the parameters."""
        raise NotImplementedError(f"{type(self).__name__}.rsample: its draws have no gradient")

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws of shape sample_shape + batch_shape + event_shape, without gradients."""
        with onestep.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability, or its density, at `value`."""
        raise self._missing("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        raise self._missing("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Where cdf is `value`."""
        raise self._missing("icdf")

    def entropy(self) -> Tensor:
        """The mean of -log_prob."""
        raise self._missing("entropy")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a first dim."""
        raise self._missing("enumerate_support")

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """`values` [n, event_shape...] for each of the batch."""
        n, event = values.shape[0], values.shape[1:]
        values = values.reshape(n, *[1] * len(self.batch_shape), *event)
        return values.expand(n, *self.batch_shape, *event) if expand else values

    def perplexity(self) -> Tensor:
        return self.entropy().exp()

    @property
    def mean(self) -> Tensor:
        raise self._missing("mean")

    @property
    def mode(self) -> Tensor:
        raise self._missing("mode")

    @property
    def variance(self) -> Tensor:
        raise self._missing("variance")

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in getattr(self, "_given", self._parameters))
        shown = (f"{name}: {value.item() if value.numel() == 1 else value.size()}" for name, value in values)
        return f"{type(self).__name__}({', '.join(shown)})"


class Independent(Distribution):
    """The last dims of a distribution's batch shape become dims of what is drawn: its log_prob is their sum."""

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: Any = None
    ) -> None:
        shape, dims = [*base_distribution.batch_shape, *base_distribution.event_shape], reinterpreted_batch_ndims
        batch = len(base_distribution.batch_shape)
        if dims > batch:
            raise ValueError(
                f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {dims} vs {batch}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, dims
        super().__init__(shape[: batch - dims], shape[batch - dims :], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)  # type: ignore[assignment]
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> "Independent":
        within = self.event_shape[: self.reinterpreted_batch_ndims]
        return Independent(self.base_dist.expand([*batch_shape, *within]), self.reinterpreted_batch_ndims)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


LOG_2_PI = math.log(2 * math.pi)
