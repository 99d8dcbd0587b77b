"""The gamma distribution and those that are drawn by it."""

from __future__ import annotations

import math
from typing import Any, Sequence

import onestep
from onestep.distributions.constraints import nonnegative, positive, real, simplex, unit_interval
from onestep.distributions.distribution import Distribution, Number, Tensor, together


def at_least_tiny(x: Tensor) -> Tensor:
    """x, of which what is 0 becomes the smallest normal number, as far as values go."""
    x.detach().clamp_(min=onestep.finfo(x.dtype).tiny)
    return x


class Gamma(Distribution):
    """rate^c x^(c - 1) exp(-rate x) / gamma(c) with c the concentration"""

    has_rsample = True
    _parameters = ("concentration", "rate")

    def __init__(self, concentration: Number, rate: Number, validate_args: Any = None) -> None:
        self.concentration, self.rate = together(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)
        self._require_positive()

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._shape(sample_shape)
        return at_least_tiny(onestep._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, nonnegative.check, "at least 0")
        c, rate = self.concentration, self.rate
        return onestep.xlogy(c, rate) + onestep.xlogy(c - 1, value) - rate * value - c.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        self._require("value", value, nonnegative.check, "at least 0")
        return onestep.igamma(*onestep.broadcast_tensors(self.concentration, self.rate * value))

    def entropy(self) -> Tensor:
        c = self.concentration
        return c - self.rate.log() + c.lgamma() + (1 - c) * c.digamma()


class Chi2(Gamma):
    """The sum of the squares of df standard normal draws: Gamma(df / 2, 1 / 2)."""

    _given = ("df",)

    def __init__(self, df: Number, validate_args: Any = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args)

    df = property(lambda self: self.concentration * 2)


class Dirichlet(Distribution):
    """Proportions x [..., K] of sum 1, of density proportional to the product of x_k^(c_k - 1) with c the concentration."""

    has_rsample = True
    _parameters = ("concentration",)

    def __init__(self, concentration: Tensor, validate_args: Any = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)
        self._require_positive()

    _total = property(lambda self: self.concentration.sum(-1))
    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0)
        corner = onestep.nn.functional.one_hot((above / above.sum(-1, True)).argmax(-1), above.shape[-1]).to(above.dtype)
        return onestep.where((self.concentration < 1).all(-1, True), corner, above / above.sum(-1, True))

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return onestep._sample_dirichlet(self.concentration.expand(self._shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, lambda v: (v >= 0) & simplex.check(v).unsqueeze(-1), "proportions of sum 1")
        c = self.concentration
        return onestep.xlogy(c - 1, value).sum(-1) + self._total.lgamma() - c.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        c, total = self.concentration, self._total
        each = c.lgamma().sum(-1) - total.lgamma() - (c.shape[-1] - total) * total.digamma()
        return each - ((c - 1) * c.digamma()).sum(-1)


class Beta(Distribution):
    """x^(a - 1) (1 - x)^(b - 1) gamma(a + b) / (gamma(a) gamma(b)) with a = concentration1 and b = concentration0"""

    has_rsample = True
    _parameters = ("concentration1", "concentration0")

    def __init__(self, concentration1: Number, concentration0: Number, validate_args: Any = None) -> None:
        self.concentration1, self.concentration0 = together(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)
        self._require_positive()

    @property
    def _dirichlet(self) -> Dirichlet:
        return Dirichlet(onestep.stack([self.concentration1, self.concentration0], -1), validate_args=False)

    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, unit_interval.check, "from 0 to 1")
        return self._dirichlet.log_prob(onestep.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()


class StudentT(Distribution):
    """loc + scale x / sqrt(y / df) for a standard normal x and a y of Chi2(df)."""

    has_rsample = True
    _parameters = ("df", "loc", "scale")

    def __init__(self, df: Number, loc: Number = 0.0, scale: Number = 1.0, validate_args: Any = None) -> None:
        self.df, self.loc, self.scale = together(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)
        self._require("parameter df", self.df, positive.check, "above 0")
        self._require("parameter loc", self.loc, real.check, "no NaN")
        self._require("parameter scale", self.scale, positive.check, "above 0")

    mean = property(lambda self: onestep.where(self.df <= 1, math.nan, self.loc))
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        variance = onestep.where(self.df > 2, self.scale.pow(2) * self.df / (self.df - 2), math.inf)
        return onestep.where(self.df <= 1, math.nan, variance)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        x = onestep.randn(self._shape(sample_shape), dtype=self.loc.dtype)
        y = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * (x * onestep.rsqrt(y / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require_real(value)
        df, y = self.df, (value - self.loc) / self.scale
        norm = self.scale.log() + 0.5 * df.log() + 0.5 * math.log(math.pi) + (0.5 * df).lgamma() - (0.5 * (df + 1)).lgamma()
        return -0.5 * (df + 1) * onestep.log1p(y**2 / df) - norm

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + 0.5 * math.log(math.pi) - more.lgamma()
        return self.scale.log() + more * (more.digamma() - half.digamma()) + 0.5 * self.df.log() + log_beta


class FisherSnedecor(Distribution):
    """The quotient of draws of Chi2(df1) and Chi2(df2), each divided by its df."""

    has_rsample = True
    _parameters = ("df1", "df2")

    def __init__(self, df1: Number, df2: Number, validate_args: Any = None) -> None:
        self.df1, self.df2 = together(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)
        self._require_positive()

    mean = property(lambda self: onestep.where(self.df2 <= 2, math.nan, self.df2 / (self.df2 - 2)))

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return onestep.where(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        variance = 2 * b.pow(2) * (a + b - 2) / (a * (b - 2).pow(2) * (b - 4))
        return onestep.where(b <= 4, math.nan, variance)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        above, below = (Gamma(df * 0.5, df, validate_args=False).rsample(sample_shape) for df in (self.df1, self.df2))
        return at_least_tiny(above / at_least_tiny(below))

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, positive.check, "above 0")
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        power = a * ratio.log() + (a - 1) * value.log()
        return (a + b).lgamma() - a.lgamma() - b.lgamma() + power - (a + b) * onestep.log1p(ratio * value)
