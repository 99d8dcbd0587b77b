"""Ops of whole numbers and of the parts of numbers, and draws that are a few other ops: functions and methods."""

from __future__ import annotations

import math
from typing import NamedTuple

from onestep import _C
from onestep._C import Tensor
from onestep._composed import _method, _op
from onestep._functions import broadcast_tensors

__all__ = ["frexp", "gcd", "lcm", "renorm", "unravel_index"]


def _check_whole(name: str, *dtypes: _C.dtype) -> None:
    if any(dtype.is_floating_point or dtype.is_complex for dtype in dtypes) or all(dtype == _C.bool for dtype in dtypes):
        raise _C.DTypeError(f"{name}: needs whole numbers: got {' and '.join(str(dtype) for dtype in dtypes)}")


def _magnitudes(name: str, input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Of both, in one dtype and shape."""
    _check_whole(name, input.dtype, other.dtype)
    dtype = _C.promote_types(input.dtype, other.dtype)
    a, b = broadcast_tensors(input.to(dtype), other.to(dtype))
    return a.abs(), b.abs()


@_op
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor, by Euclid; gcd(0, 0) = 0."""
    a, b = _magnitudes("gcd", input, other)
    while bool(b.any()):
        divisor = b.masked_fill(b == 0, 1)
        a, b = _C.where(b == 0, a, b), (a % divisor).masked_fill(b == 0, 0)
    return a


@_op
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple; 0 where one is 0."""
    a, b = _magnitudes("lcm", input, other)
    divisor = gcd(a, b)
    return a // divisor.masked_fill(divisor == 0, 1) * b


def unravel_index(indices: Tensor, shape) -> tuple[Tensor, ...]:
    """The places in each dim of elements of a tensor of `shape` that are counted row by row (numpy.unravel_index)."""
    shape = [shape] if isinstance(shape, int) else list(shape)
    _check_whole("unravel_index", indices.dtype)
    found = []
    indices = indices.long()
    for size in reversed(shape):
        found.append(indices % size)
        indices = indices // size
    return tuple(reversed(found))


class Frexp(NamedTuple):
    """x = mantissa 2^exponent."""

    mantissa: Tensor
    exponent: Tensor


@_op
def frexp(input: Tensor) -> Frexp:
    """x = mantissa 2^exponent with 1/2 <= |mantissa| < 1; 0, infinities and NaN have the exponent 0."""
    if not input.is_floating_point():
        raise _C.DTypeError(f"frexp: needs a floating dtype: got {input.dtype}")
    a = input.detach().double().abs()
    plain = (a > 0) & (a < math.inf)
    exponent = (a.masked_fill(~plain, 0.5).log2().floor() + 1)
    half = _C.pow(2.0, exponent - 1)  # log2 of what is next to a power of two is this power's
    exponent = exponent + (a >= 2 * half).double() * plain - (a < half).double() * plain
    down = (exponent / 2).floor()
    mantissa = input.double() * _C.pow(2.0, -down) * _C.pow(2.0, down - exponent)  # 2^1074 is no number
    return Frexp(mantissa.to(input.dtype), exponent.to(_C.int32))


@_op
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The slices along `dim`, those with a p-norm above `maxnorm` scaled down to it."""
    others = [d for d in range(input.dim()) if d != dim % input.dim()]
    norms = _C._vector_norm(input, p, others, True)
    return input * _C.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


def _uniforms(self: Tensor, generator) -> Tensor:
    return _C.rand(self.shape, dtype=_C.float64, generator=generator)


@_method
def geometric_(self: Tensor, p: float, *, generator=None) -> Tensor:
    """Fills with how many trials of probability p the first success takes: ceil(log(u) / log(1 - p))."""
    if not 0 < p < 1:
        raise _C.Error(f"geometric_: p must lie between 0 and 1: got {p}")
    return self.copy_((_uniforms(self, generator).log() / math.log1p(-p)).ceil())


@_method
def cauchy_(self: Tensor, median: float = 0, sigma: float = 1, *, generator=None) -> Tensor:
    """Fills with draws of Cauchy's distribution: median + sigma tan(pi (u - 1/2))."""
    if sigma <= 0:
        raise _C.Error(f"cauchy_: sigma must be positive: got {sigma}")
    return self.copy_(median + sigma * _C.tan(math.pi * (_uniforms(self, generator).clamp(2.0**-52, 1 - 2.0**-52) - 0.5)))
