"""Distributions that are another one's draws, transformed (torch.distributions.TransformedDistribution), and those made so."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

import onestep
from onestep.distributions.continuous import Exponential, Normal, Uniform
from onestep.distributions.discrete import Categorical, of_one_of_two
from onestep.distributions.distribution import Distribution, Number, Tensor, clamp_probs, sum_last, together
from onestep.distributions.gamma import Gamma
from onestep.distributions.transforms import (
    AffineTransform, ComposeTransform, ExpTransform, PowerTransform, SigmoidTransform, Transform, composed
)  # fmt: skip

_EULER = 0.57721566490153286060


class TransformedDistribution(Distribution):
    """y = t(x) for x of base_distribution: log_prob(y) = base.log_prob(x) - log |dy / dx|."""

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: Any = None) -> None:
        self.transforms = composed(transforms)
        self._all = ComposeTransform(self.transforms)
        event_shape = base_distribution.event_shape
        shape = self._all.forward_shape([*base_distribution.batch_shape, *event_shape])
        batch_shape = shape[: len(shape) - len(event_shape)]
        self.base_dist = base_distribution.expand(batch_shape)
        super().__init__(batch_shape, event_shape, validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)  # type: ignore[assignment]

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        other = super().expand(batch_shape)
        other.base_dist = self.base_dist.expand(batch_shape)
        return other

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with onestep.no_grad():
            return self._all(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._all(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        log_prob: Any = 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            log_prob = log_prob - sum_last(transform.log_abs_det_jacobian(x, value), len(self.event_shape))
            value = x
        return log_prob + self.base_dist.log_prob(value)

    def _from_above(self, probability: Tensor) -> Tensor:
        """1 - probability where the transforms turn the order around."""
        sign = self._all.sign
        return probability if isinstance(sign, int) and sign == 1 else sign * (probability - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        return self._from_above(self.base_dist.cdf(self._all.inv(value)))

    def icdf(self, value: Tensor) -> Tensor:
        return self._all(self.base_dist.icdf(self._from_above(value)))


class LogNormal(TransformedDistribution):
    """exp(x) of a normal x."""

    def __init__(self, loc: Number, scale: Number, validate_args: Any = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())
    variance = property(lambda self: self.scale.pow(2).expm1() * (2 * self.loc + self.scale.pow(2)).exp())

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class Gumbel(TransformedDistribution):
    """loc - scale log(-log(u)) of a uniform u."""

    _parameters = ("loc", "scale")

    def __init__(self, loc: Number, scale: Number, validate_args: Any = None) -> None:
        self.loc, self.scale = together(loc, scale)
        limits = onestep.finfo(self.loc.dtype)
        low, high = onestep.full_like(self.loc, limits.tiny), onestep.full_like(self.loc, 1 - limits.eps)
        logs = [ExpTransform().inv, AffineTransform(0, -onestep.ones_like(self.scale)), ExpTransform().inv]
        transforms: list[Transform] = [*logs, AffineTransform(self.loc, -self.scale)]
        super().__init__(Uniform(low, high, validate_args), transforms, validate_args)

    mean = property(lambda self: self.loc + self.scale * _EULER)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require_real(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + _EULER)


class InverseGamma(TransformedDistribution):
    """1 / x of an x of Gamma(concentration, rate)."""

    def __init__(self, concentration: Number, rate: Number, validate_args: Any = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-onestep.ones_like(base.rate)), validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return onestep.where(c > 1, self.rate / (c - 1), math.inf)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return onestep.where(c > 2, self.rate.square() / ((c - 1).square() * (c - 2)), math.inf)

    def entropy(self) -> Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()


class Pareto(TransformedDistribution):
    """alpha scale^alpha / x^(alpha + 1) from scale on"""

    _parameters = ("scale", "alpha")

    def __init__(self, scale: Number, alpha: Number, validate_args: Any = None) -> None:
        self.scale, self.alpha = together(scale, alpha)
        transforms: list[Transform] = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(Exponential(self.alpha, validate_args), transforms, validate_args)

    mode = property(lambda self: self.scale)

    @property
    def mean(self) -> Tensor:
        alpha = self.alpha.clamp(min=1)  # infinite below
        return alpha * self.scale / (alpha - 1)

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha.clamp(min=2)
        return self.scale.pow(2) * alpha / ((alpha - 1).pow(2) * (alpha - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """scale x^(1 / concentration) of an x of Exponential(1)."""

    _parameters = ("scale", "concentration")

    def __init__(self, scale: Number, concentration: Number, validate_args: Any = None) -> None:
        self.scale, self.concentration = together(scale, concentration)
        transforms = [PowerTransform(self.concentration.reciprocal()), AffineTransform(0, self.scale)]
        super().__init__(Exponential(onestep.ones_like(self.scale)), transforms, validate_args)

    def _moment(self, n: int) -> Tensor:
        """Of x^n / scale^n: gamma(1 + n / concentration)."""
        return (1 + n * self.concentration.reciprocal()).lgamma().exp()

    mean = property(lambda self: self.scale * self._moment(1))
    variance = property(lambda self: self.scale.pow(2) * (self._moment(2) - self._moment(1).pow(2)))

    @property
    def mode(self) -> Tensor:
        c = self.concentration
        return self.scale * ((c - 1) / c) ** c.reciprocal()

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return _EULER * (1 - inverse) + (self.scale * inverse).log() + 1


class Kumaraswamy(TransformedDistribution):
    """(1 - u^(1 / b))^(1 / a) of a uniform u, with a = concentration1 and b = concentration0."""

    _parameters = ("concentration1", "concentration0")

    def __init__(self, concentration1: Number, concentration0: Number, validate_args: Any = None) -> None:
        self.concentration1, self.concentration0 = a, b = together(concentration1, concentration0)
        base = Uniform(onestep.full_like(b, 0), onestep.full_like(b, 1), validate_args)
        transforms: list[Transform] = [PowerTransform(b.reciprocal()), AffineTransform(1.0, -1.0), PowerTransform(a.reciprocal())]
        super().__init__(base, transforms, validate_args)

    def _moment(self, n: int) -> Tensor:
        """b beta(1 + n / a, b)"""
        b, more = self.concentration0, 1 + n / self.concentration1
        return onestep.exp(b.log() + more.lgamma() + b.lgamma() - (more + b).lgamma())

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1).pow(2))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()  # PyTorch tells NaN
        return onestep.where((a < 1) | (b < 1), math.nan, mode)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + _EULER
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class _LogitRelaxedBernoulli(Distribution):
    has_rsample = True
    _parameters = ("probs", "logits")

    def __init__(self, temperature: Tensor, probs: Any, logits: Any, validate_args: Any) -> None:
        self.temperature, (self.probs, self.logits) = temperature, of_one_of_two(probs, logits)
        super().__init__(self.probs.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(onestep.rand(shape, dtype=probs.dtype))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = onestep.broadcast_tensors(self.logits, value)
        difference = logits - value * self.temperature
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Between 0 and 1, with gradients; near 0 or 1 at a low temperature (Maddison et al. 2017)."""

    def __init__(
        self, temperature: Tensor, probs: Optional[Number] = None, logits: Optional[Number] = None, validate_args: Any = None
    ) -> None:
        base = _LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)


class _ExpRelaxedCategorical(Distribution):
    has_rsample = True
    _parameters = ("probs", "logits")

    def __init__(self, temperature: Tensor, probs: Any, logits: Any, validate_args: Any) -> None:
        categorical = Categorical(probs, logits, validate_args)
        self.temperature, self.probs, self.logits = temperature, categorical.probs, categorical.logits
        super().__init__(self.probs.shape[:-1], self.probs.shape[-1:], validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = clamp_probs(onestep.rand(self._shape(sample_shape), dtype=self.logits.dtype))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self.event_shape[0]
        logits, value = onestep.broadcast_tensors(self.logits, value)
        score = logits - value * self.temperature
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        return score + math.lgamma(k) + (k - 1) * self.temperature.log()


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors of K positive numbers of sum 1, with gradients; nearly one-hot at a low temperature (Gumbel-softmax, Jang et al. 2017)."""

    def __init__(
        self, temperature: Tensor, probs: Optional[Tensor] = None, logits: Optional[Tensor] = None, validate_args: Any = None
    ) -> None:
        base = _ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)
