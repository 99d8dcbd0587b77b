"""Distributions of real numbers, which are drawn by a formula of uniform, normal or exponential ones."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

import onestep
from onestep.distributions.constraints import interval, nonnegative, positive, real
from onestep.distributions.distribution import LOG_2_PI, Distribution, Number, Tensor, together


class _LocationScale(Distribution):
    """loc + scale x for a standard x."""

    has_rsample = True
    _parameters = ("loc", "scale")

    def __init__(self, loc: Number, scale: Number, validate_args: Any = None) -> None:
        self.loc, self.scale = together(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
        self._require("parameter loc", self.loc, real.check, "no NaN")
        self._require("parameter scale", self.scale, positive.check, "above 0")

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)


class Normal(_LocationScale):
    """exp(-(x - loc)^2 / (2 scale^2)) / (scale sqrt(2 pi))"""

    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.pow(2))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._shape(sample_shape)
        with onestep.no_grad():
            return onestep.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + onestep.randn(self._shape(sample_shape), dtype=self.loc.dtype) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._require_real(value)
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - LOG_2_PI / 2

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + onestep.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * onestep.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        """1/2 + log(2 pi) / 2 + log(scale)"""
        return 0.5 + 0.5 * LOG_2_PI + onestep.log(self.scale)


class Laplace(_LocationScale):
    """exp(-|x - loc| / scale) / (2 scale)"""

    variance = property(lambda self: 2 * self.scale.pow(2))
    stddev = property(lambda self: math.sqrt(2) * self.scale)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = onestep.empty(self._shape(sample_shape), dtype=self.loc.dtype)
        u.uniform_(onestep.finfo(u.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * onestep.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        self._require_real(value)
        return -onestep.log(2 * self.scale) - onestep.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        from_loc = value - self.loc
        return 0.5 - 0.5 * from_loc.sign() * onestep.expm1(-from_loc.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        from_half = value - 0.5
        return self.loc - self.scale * from_half.sign() * onestep.log1p(-2 * from_half.abs())

    def entropy(self) -> Tensor:
        """1 + log(2 scale)"""
        return 1 + onestep.log(2 * self.scale)


class Cauchy(_LocationScale):
    """1 / (pi scale (1 + ((x - loc) / scale)^2))"""

    mean = property(lambda self: onestep.full_like(self.loc, math.nan))
    variance = property(lambda self: onestep.full_like(self.loc, math.inf))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = onestep.rand(self._shape(sample_shape), dtype=onestep.float64)
        return self.loc + onestep.tan(math.pi * (u - 0.5)).to(self.loc.dtype) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._require_real(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return onestep.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return onestep.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        """log(4 pi scale)"""
        return math.log(4 * math.pi) + self.scale.log()


class _Half(Distribution):
    """|x| of an x of base_dist, which lies around 0 as often on either side."""

    has_rsample = True
    _parameters = ("scale",)
    _base: Any

    def __init__(self, scale: Number, validate_args: Any = None) -> None:
        (self.scale,) = together(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)
        self._require_positive()

    @property
    def base_dist(self) -> Any:
        return self._base(onestep.zeros_like(self.scale), self.scale, validate_args=False)

    mode = property(lambda self: onestep.zeros_like(self.scale))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape).abs()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, nonnegative.check, "at least 0")
        return onestep.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """|x| of a normal x around 0."""

    _base = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """|x| of an x of Cauchy(0, scale)."""

    _base = Cauchy
    mean = property(lambda self: onestep.full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class Uniform(Distribution):
    """1 / (high - low) from low to below high"""

    has_rsample = True
    _parameters = ("low", "high")

    def __init__(self, low: Number, high: Number, validate_args: Any = None) -> None:
        self.low, self.high = together(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validates and not bool((self.low < self.high).all()):
            raise ValueError("Uniform is not defined when low>= high")

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)
    stddev = property(lambda self: (self.high - self.low) / math.sqrt(12))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.low + onestep.rand(self._shape(sample_shape), dtype=self.low.dtype) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, interval(self.low, self.high).check, "from low to high")
        inside = (self.low <= value) & (self.high > value)
        return onestep.log(inside.to(self.low.dtype)) - onestep.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        """log(high - low)"""
        return onestep.log(self.high - self.low)


class Exponential(Distribution):
    """rate exp(-rate x)"""

    has_rsample = True
    _parameters = ("rate",)

    def __init__(self, rate: Number, validate_args: Any = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)
        self._require_positive()

    mean = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: onestep.zeros_like(self.rate))
    stddev = property(lambda self: self.rate.reciprocal())
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return onestep.empty(self._shape(sample_shape), dtype=self.rate.dtype).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._require("value", value, nonnegative.check, "at least 0")
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        return 1 - onestep.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -onestep.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        """1 - log(rate)"""
        return 1.0 - onestep.log(self.rate)


class MultivariateNormal(Distribution):
    """loc + L x for a standard normal x [D]; L [D, D] is scale_tril, or of the covariance matrix L L^T, or of its inverse."""

    has_rsample = True
    _parameters = ("loc", "scale_tril")

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Optional[Tensor] = None,
        precision_matrix: Optional[Tensor] = None,
        scale_tril: Optional[Tensor] = None,
        validate_args: Any = None,
    ) -> None:
        matrices = {
            "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril
        }  # fmt: skip
        given = [matrix for matrix in matrices.values() if matrix is not None]
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if given[0].dim() < 2:
            raise ValueError("the matrix must be at least two-dimensional, with optional leading batch dimensions")
        self._given = ("loc", *(name for name, matrix in matrices.items() if matrix is not None))
        batch, size = onestep.broadcast_shapes(given[0].shape[:-2], loc.shape[:-1]), loc.shape[-1]
        super().__init__(batch, loc.shape[-1:], validate_args)
        self.loc, matrix = loc.expand(*batch, size), given[0].expand(*batch, size, size)
        if scale_tril is not None:
            self.scale_tril = matrix
        elif covariance_matrix is not None:
            self.scale_tril = onestep.linalg.cholesky(matrix)
        else:  # of the inverse, which is never made
            upper = onestep.linalg.cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT
            eye = onestep.eye(size, dtype=matrix.dtype)
            self.scale_tril = onestep.linalg.solve_triangular(upper, eye, upper=False)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: self.scale_tril.pow(2).sum(-1))
    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.mT)
    precision_matrix = property(lambda self: onestep.cholesky_inverse(self.scale_tril))

    def half_log_det(self) -> Tensor:
        """Of the covariance matrix: log det L."""
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def distance(self, x: Tensor) -> Tensor:
        """|L^-1 x|^2 (Mahalanobis)"""
        columns = onestep.linalg.solve_triangular(self.scale_tril, x.unsqueeze(-1), upper=False)
        return columns.squeeze(-1).pow(2).sum(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        x = onestep.randn(self._shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self.scale_tril @ x.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._require_real(value)
        return -0.5 * (self.event_shape[0] * LOG_2_PI + self.distance(value - self.loc)) - self.half_log_det()

    def entropy(self) -> Tensor:
        """D (1 + log(2 pi)) / 2 + log det L"""
        return 0.5 * self.event_shape[0] * (1.0 + LOG_2_PI) + self.half_log_det()
