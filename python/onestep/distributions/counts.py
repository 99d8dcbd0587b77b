"""Distributions of how often something happens."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import onestep
from onestep.distributions.constraints import integer_interval, nonnegative, nonnegative_integer, unit_interval
from onestep.distributions.discrete import Categorical, of_one_of_two
from onestep.distributions.distribution import Distribution, Number, Tensor, together
from onestep.distributions.gamma import Gamma

logsigmoid = onestep.nn.functional.logsigmoid


class Poisson(Distribution):
    """rate^k exp(-rate) / k! for k = 0, 1, ..."""

    _parameters = ("rate",)

    def __init__(self, rate: Number, validate_args: Any = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)
        self._require("parameter rate", self.rate, nonnegative.check, "at least 0")

    mean = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    variance = property(lambda self: self.rate)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return onestep.poisson(self.rate.detach().expand(self._shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, nonnegative_integer.check, "0, 1, 2, ...")
        value, rate = onestep.broadcast_tensors(value, self.rate)
        return value.xlogy(rate) - rate - (value + 1).lgamma()


class _Trials(Distribution):
    """Of a number of trials that succeed with probability probs, or by its logit."""

    _parameters = ("total_count", "probs", "logits")

    def __init__(
        self,
        total_count: Number,
        probs: Optional[Number] = None,
        logits: Optional[Number] = None,
        validate_args: Any = None,
    ) -> None:
        self._given = ("total_count", "probs" if logits is None else "logits")
        count, self.probs, self.logits = together(total_count, *of_one_of_two(probs, logits))
        self.total_count = count.to(self.probs.dtype)
        super().__init__(self.probs.shape, validate_args=validate_args)
        self._require("parameter total_count", self.total_count, nonnegative.check, "at least 0")
        self._require("parameter probs or logits", self.probs, unit_interval.check, "no NaN, and from 0 to 1 as probs")


class Binomial(_Trials):
    """How many of total_count trials succeed: n! / (k! (n - k)!) p^k (1 - p)^(n - k)"""

    has_enumerate_support = True

    def __init__(
        self,
        total_count: Number = 1,
        probs: Optional[Number] = None,
        logits: Optional[Number] = None,
        validate_args: Any = None,
    ) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    mean = property(lambda self: self.total_count * self.probs)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        return onestep.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._shape(sample_shape)
        return onestep.binomial(self.total_count.expand(shape), self.probs.detach().expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, integer_interval(0, self.total_count).check, "whole, from 0 to total_count")  # type: ignore[arg-type]
        n, logits = self.total_count, self.logits
        above = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2  # whose gradient at 0 is 1/2
        norm = n * above + n * onestep.log1p(onestep.exp(-onestep.abs(logits))) - (n + 1).lgamma()
        return value * logits - (value + 1).lgamma() - (n - value + 1).lgamma() - norm

    def entropy(self) -> Tensor:
        log_prob = self.log_prob(self._support("entropy", False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._support("enumerate_support", expand)

    def _support(self, what: str, expand: bool) -> Tensor:
        most = int(self.total_count.max())
        if bool((self.total_count != most).any()):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return self._enumerated(onestep.arange(most + 1, dtype=self.probs.dtype), expand)


class NegativeBinomial(_Trials):
    """How many trials succeed before total_count fail: gamma(n + k) / (k! gamma(n)) p^k (1 - p)^n"""

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0))
    variance = property(lambda self: self.mean / onestep.sigmoid(-self.logits))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        rates = Gamma(self.total_count, onestep.exp(-self.logits), validate_args=False)
        return onestep.poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, nonnegative_integer.check, "0, 1, 2, ...")
        n = self.total_count
        powers = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        norm = -(n + value).lgamma() + (1 + value).lgamma() + n.lgamma()
        return powers - onestep.where(n + value == 0, 0.0, norm)


class Multinomial(Distribution):
    """How often each of K categories comes in total_count draws, by probs [..., K] or logits."""

    _parameters = ("probs", "logits")

    def __init__(
        self,
        total_count: int = 1,
        probs: Optional[Tensor] = None,
        logits: Optional[Tensor] = None,
        validate_args: Any = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        categorical = Categorical(probs, logits, validate_args)
        self.total_count, self._given = total_count, categorical._given
        self.probs, self.logits = categorical.probs, categorical.logits
        super().__init__(self.probs.shape[:-1], self.probs.shape[-1:], validate_args)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = Categorical(self.probs, validate_args=False).sample((self.total_count, *sample_shape)).movedim(0, -1)
        return onestep.zeros(self._shape(sample_shape), dtype=self.probs.dtype).scatter_add(
            -1, drawn, onestep.ones(drawn.shape, dtype=self.probs.dtype)
        )

    def log_prob(self, value: Tensor) -> Tensor:
        count = self.total_count
        self._require(
            "value", value, lambda v: nonnegative_integer.check(v).all(-1) & (v.sum(-1) == count), f"counts of sum {count}"
        )
        logits, value = onestep.broadcast_tensors(self.logits, value)
        logits = onestep.where((value == 0) & (logits == -onestep.inf), 0.0, logits)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = onestep.tensor(float(self.total_count), dtype=self.probs.dtype)
        each = Binomial(self.total_count, self.probs, validate_args=False)
        support = each.enumerate_support(expand=False)[1:]
        repeated = (each.log_prob(support).exp() * (support + 1).lgamma()).sum((0, -1))
        return n * Categorical(self.probs, validate_args=False).entropy() - (n + 1).lgamma() + repeated
