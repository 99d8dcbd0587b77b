"""Distributions over a few values or over whole numbers, by their probabilities or by logits."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence, Tuple

import onestep
from onestep.distributions.constraints import boolean, nonnegative_integer, one_hot, unit_interval
from onestep.distributions.distribution import Distribution, Number, Tensor, clamp_probs


def _one_of(probs: Optional[Any], logits: Optional[Any]) -> Tensor:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    given: Any = logits if probs is None else probs
    return given if isinstance(given, Tensor) else onestep.tensor(float(given))


def of_one_of_two(probs: Optional[Any], logits: Optional[Any]) -> Tuple[Tensor, Tensor]:
    """(p, log(p / (1 - p))), whichever is given."""
    given = _one_of(probs, logits)
    if logits is not None:
        return onestep.sigmoid(given), given
    inside = clamp_probs(given)
    return given, inside.log() - (-inside).log1p()


class Categorical(Distribution):
    """0 .. K - 1, by probs [..., K] (which are divided by their sum) or logits."""

    has_enumerate_support = True
    _parameters = ("probs", "logits")

    def __init__(self, probs: Optional[Tensor] = None, logits: Optional[Tensor] = None, validate_args: Any = None) -> None:
        given = _one_of(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{'probs' if logits is None else 'logits'}` parameter must be at least one-dimensional.")
        if logits is None:
            self.probs = given / given.sum(-1, keepdim=True)
            self.logits = clamp_probs(self.probs).log()
        else:
            self.logits = given - given.logsumexp(dim=-1, keepdim=True)
            self.probs = onestep.softmax(self.logits, dim=-1)
        super().__init__(given.shape[:-1], validate_args=validate_args)
        self._given = ("probs" if logits is None else "logits",)
        what = f"parameter {self._given[0]}"
        self._require(what, given, lambda _: self.probs >= 0, "no NaN, nor negative as probs")

    @property
    def mean(self) -> Tensor:
        return onestep.full_like(self.probs[..., 0], math.nan)

    variance = mean
    mode = property(lambda self: self.probs.argmax(dim=-1))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(onestep.arange(self.probs.shape[-1]), expand)

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


class _OfProbability(Distribution):
    """By a probability, or its logit."""

    _parameters = ("probs", "logits")

    def __init__(
        self, probs: Optional[Number] = None, logits: Optional[Number] = None, validate_args: Any = None
    ) -> None:
        self.probs, self.logits = of_one_of_two(probs, logits)
        super().__init__(self.probs.shape, validate_args=validate_args)
        self._given = ("probs" if logits is None else "logits",)
        what = f"parameter {self._given[0]}"
        self._require(what, self.probs, unit_interval.check, "no NaN, and from 0 to 1 as probs")


class Bernoulli(_OfProbability):
    """1 with probability probs, else 0; or by logits."""

    has_enumerate_support = True
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return onestep.where(self.probs == 0.5, math.nan, mode)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(onestep.arange(2, dtype=self.probs.dtype), expand)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return onestep.bernoulli(self.probs.detach().expand(self._shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, boolean.check, "0 or 1")
        logits, value = onestep.broadcast_tensors(self.logits, value)
        return -onestep.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """-p log p - (1 - p) log(1 - p)"""
        return onestep.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


class Geometric(_OfProbability):
    """How often a Bernoulli one is 0 before it is 1: (1 - p)^k p for k = 0, 1, ..."""

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: onestep.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with onestep.no_grad():
            u = onestep.rand(self._shape(sample_shape), dtype=self.probs.dtype)
            return (u.clamp(min=onestep.finfo(u.dtype).tiny).log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, nonnegative_integer.check, "0, 1, 2, ...")
        value, probs = onestep.broadcast_tensors(value, self.probs)
        never = onestep.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-never).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        """Of a Bernoulli one, divided by p"""
        return Bernoulli(self.probs, validate_args=False).entropy() / self.probs


class OneHotCategorical(Distribution):
    """Categorical as vectors of K numbers, of which one is 1 and the others are 0."""

    has_enumerate_support = True
    _parameters = ("probs", "logits")

    def __init__(self, probs: Optional[Tensor] = None, logits: Optional[Tensor] = None, validate_args: Any = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        self._given = self._categorical._given
        shape = self.probs.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    mode = property(lambda self: self._one_hot(self._categorical.mode))

    def _one_hot(self, index: Tensor) -> Tensor:
        return onestep.nn.functional.one_hot(index, self.event_shape[0]).to(self.probs.dtype)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> "OneHotCategorical":
        return type(self)(logits=self.logits.expand(*batch_shape, *self.event_shape), validate_args=False)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(onestep.eye(self.event_shape[0], dtype=self.probs.dtype), expand)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, one_hot.check, "one-hot")
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Whose draws have the gradients of probs (Bengio et al. 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
