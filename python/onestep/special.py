"""torch.special: names of ops that are there, and functions that are a few of these, computed in float64."""

from __future__ import annotations

import math
from functools import wraps
from typing import Callable

from onestep import _C
from onestep._C import (  # noqa: F401
    Tensor, digamma, digamma as psi, igamma as gammainc, igammac as gammaincc, erf, erfc, erfinv, exp2, expm1, lgamma as gammaln, log1p, log_softmax,
    logit, logsumexp, polygamma, round, sigmoid as expit, sinc, softmax, xlogy,
)  # fmt: skip
from onestep._composed import mvlgamma as multigammaln  # noqa: F401
from onestep._out import with_out
from onestep.autograd.function import Function

_ROOT_HALF = math.sqrt(0.5)


def _in_double(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """What `function` of float64 gives, in the dtype of the argument, or the default one of whole numbers."""

    @with_out
    @wraps(function)
    def rounded(input: Tensor) -> Tensor:
        dtype = input.dtype if input.is_floating_point() else _C.get_default_dtype()
        return function(input.double()).to(dtype)

    return rounded


def _polynomial(x: Tensor, coefficients: list[float]) -> Tensor:
    """c[0] + c[1] x + c[2] x^2 + ..."""
    y = _C.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        y = y * x + c
    return y


# ---- entropies


@_in_double
def entr(input: Tensor) -> Tensor:
    """-x log(x); 0 for 0, -inf below."""
    return _C.where(input < 0, -math.inf, -_C.xlogy(input, input.clamp(min=0)))


@with_out
def xlog1py(input, other) -> Tensor:
    """input log(1 + other), 0 where input is 0 and other no NaN."""
    input, other = (v if isinstance(v, Tensor) else _C.tensor(v) for v in (input, other))
    dtype = _C.result_type(input, other)
    a, b = (v.to(dtype if dtype.is_floating_point else _C.get_default_dtype()) for v in (input, other))
    none = (a == 0) & ~b.isnan()
    return _C.where(none, 0.0, a * b.masked_fill(none, 0.0).log1p())


# ---- the normal distribution


@_in_double
def erfcx(input: Tensor) -> Tensor:
    """exp(x^2) erfc(x). From 6 on by Laplace's continued fraction 1 / (x + 1/2 / (x + 2/2 / (x + ...))) / sqrt(pi)."""
    far = input.clamp(min=6)
    fraction = far
    for n in range(24, 0, -1):
        fraction = far + 0.5 * n / fraction
    near = input.clamp(max=6)
    coarse = ((near.detach() * 16).floor() / 16).clamp(min=-64)  # whose square is exact
    squares = (coarse * coarse).exp() * ((near - coarse) * (near + coarse)).exp()
    return _C.where(input < 6, squares * near.erfc(), 1 / (fraction * math.sqrt(math.pi)))


@_in_double
def ndtr(input: Tensor) -> Tensor:
    """The part of the standard normal distribution below x."""
    return 0.5 * _C.erfc(-_ROOT_HALF * input)


@_in_double
def log_ndtr(input: Tensor) -> Tensor:
    """log(ndtr(x)), with all digits far below 0."""
    below = _ROOT_HALF * input.clamp(max=-1)
    above = _ROOT_HALF * input.clamp(min=-1)
    return _C.where(input < -1, (0.5 * erfcx(-below)).log() - below * below, (-0.5 * above.erfc()).log1p())


class _NormalQuantile(Function):
    @staticmethod
    def forward(ctx, p: Tensor) -> Tensor:
        """By Newton's method for log_ndtr, which is nearly a parabola, from erfinv, or in the tail from its first terms."""
        lower = _C.minimum(p, 1 - p)
        steep = (-2 * lower.log()).clamp(min=4)
        x = _C.where(lower > 0.005, (2 * lower - 1).erfinv() / _ROOT_HALF, -(steep - (steep * 2 * math.pi).log()).clamp(min=0).sqrt())
        for _ in range(4):
            step = (log_ndtr(x) - lower.log()) * erfcx(-_ROOT_HALF * x) * math.sqrt(math.pi / 2)
            x = x - step.masked_fill(~step.isfinite(), 0.0)  # where the part is 0 already
        x = _C.where(lower > 0, _C.where(p < 0.5, x, -x), _C.where(p == 0, -math.inf, _C.where(p == 1, math.inf, math.nan)))
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * (0.5 * x * x).exp() * math.sqrt(2 * math.pi)


@_in_double
def ndtri(input: Tensor) -> Tensor:
    """The x with ndtr(x) = input; NaN outside [0, 1]."""
    return _NormalQuantile.apply(input)


# ---- modified Bessel functions: series in x^2 / 4 for |x| < 20, beyond in 1 / x, where it has 17 digits

_NEAR = 20.0
_POWERS = [[1.0], [0.5]]  # 1 / k!^2, and 1 / (2 k! (k + 1)!)
_INVERSES = [[1.0], [1.0]]
for _k in range(1, 70):
    _POWERS[0].append(_POWERS[0][-1] / _k**2)
    _POWERS[1].append(_POWERS[1][-1] / (_k * (_k + 1)))
for _k in range(1, 31):
    for _order in (0, 1):
        _INVERSES[_order].append(_INVERSES[_order][-1] * ((2 * _k - 1) ** 2 - 4 * _order) / (8 * _k))


def _bessel(x: Tensor, order: int, scaled: bool) -> Tensor:
    """I(order, x), times exp(-|x|) where `scaled`."""
    near, far = x.clamp(-_NEAR, _NEAR), x.abs().clamp(min=_NEAR)
    small = _polynomial(near * near / 4, _POWERS[order]) * (near if order else 1.0)
    large = _polynomial(1 / far, _INVERSES[order]) / (2 * math.pi * far).sqrt() * (x.sign() if order else 1.0)
    if scaled:
        return _C.where(x.abs() < _NEAR, small * (-near.abs()).exp(), large)
    half = (0.5 * far).exp()  # whose square may be infinite where the product is not
    return _C.where(x.abs() < _NEAR, small, half * large * half)


@_in_double
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
    return _bessel(input, 0, False)


Tensor.i0 = i0  # type: ignore[attr-defined]


@_in_double
def i0e(input: Tensor) -> Tensor:
    """exp(-|x|) i0(x)."""
    return _bessel(input, 0, True)


@_in_double
def i1(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
    return _bessel(input, 1, False)


@_in_double
def i1e(input: Tensor) -> Tensor:
    """exp(-|x|) i1(x)."""
    return _bessel(input, 1, True)
