"""torch.fft: discrete Fourier transforms as products with small matrices, so that they are differentiable.

X[k] = sum over j of x[j] exp(-2 pi i j k / n). n = p m is p transforms of m numbers and m of p (Cooley and Tukey 1965), and a large prime
number a convolution (Bluestein 1970); angles are computed in double."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Optional, Sequence

from onestep import _C
from onestep._C import Tensor
from onestep._complex import Complex, ComplexTensor, as_complex

_SMALL = 64  # numbers that one matrix transforms


def _waves(numerators: Tensor, n: int, sign: int, dtype: Any) -> Complex:
    """exp(sign 2 pi i numerators / n)."""
    angle = numerators.remainder(n).double() * (sign * 2 * math.pi / n)
    return ComplexTensor(angle.cos().to(dtype), angle.sin().to(dtype))


@lru_cache(maxsize=64)
def _matrix(rows: int, cols: int, n: int, sign: int, dtype: Any) -> Complex:
    """[rows, cols] of exp(sign 2 pi i row col / n)."""
    return _waves(_C.outer(_C.arange(rows), _C.arange(cols)), n, sign, dtype)


def _largest_factor(n: int) -> int:
    return next((p for p in range(min(_SMALL, n), 1, -1) if n % p == 0), 1)


def _transformed(x: Complex, sign: int) -> Complex:
    """The sums over the last dim."""
    n, dtype = x.shape[-1], x.real.dtype
    p = _largest_factor(n)
    if p == n:
        return x @ _matrix(n, n, n, sign, dtype)
    if p == 1:
        return _by_convolution(x, sign)
    m = n // p  # j = p a + b, k = c + m q
    inner = _transformed(x.reshape(*x.shape[:-1], m, p).transpose(-1, -2), sign)  # [..., b, c]
    return (_matrix(p, p, p, sign, dtype) @ (inner * _matrix(p, m, n, sign, dtype))).reshape(x.shape)


def _by_convolution(x: Complex, sign: int) -> Complex:
    """j k = (j^2 + k^2 - (k - j)^2) / 2, in numbers of a power of two."""
    n = x.shape[-1]
    places = _C.arange(n)
    chirp = _waves(places * places, 2 * n, sign, x.real.dtype)
    size = 1 << (2 * n - 1).bit_length()
    kernel = _C.cat([chirp.conj(), _zeros(chirp, size - 2 * n + 1), chirp.conj()[1:].flip(0)])
    padded = _C.cat([x * chirp, _zeros(x, size - n)], -1)
    convolved = _transformed(_transformed(padded, -1) * _transformed(kernel, -1), 1) / size
    return convolved[..., :n] * chirp


def _zeros(x: Complex, count: int) -> Complex:
    return as_complex(_C.zeros(*x.shape[:-1], count, dtype=x.real.dtype))


def _resized(x: Any, n: int, dim: int, name: str) -> Any:
    """Cut to n numbers at `dim`, which is moved to the end, or continued with zeros."""
    if n < 1:
        raise RuntimeError(f"{name}: Invalid number of data points ({n}) specified")
    x = x.movedim(dim, -1)
    return x[..., :n] if n <= x.shape[-1] else _C.pad(x, [0, n - x.shape[-1]])


def _scaled(x: Any, n: int, norm: Optional[str], forward: bool) -> Any:
    if norm not in (None, "backward", "ortho", "forward"):
        raise RuntimeError(f"Invalid normalization mode: {norm!r} (backward, ortho or forward)")
    if norm == "ortho":
        return x / math.sqrt(n)
    return x / n if (norm == "forward") == forward else x


def _floating(x: Any) -> Any:
    return x if isinstance(x, ComplexTensor) or x.is_floating_point() else x.to(_C.get_default_dtype())


def fft(input: Any, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Complex:
    """The transform of n numbers along `dim`."""
    n = input.shape[dim] if n is None else n
    x = _resized(as_complex(_floating(input)), n, dim, "fft")
    return _scaled(_transformed(x, -1), n, norm, True).movedim(-1, dim)


def ifft(input: Any, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Complex:
    """Its inverse: 1/n of the sums with exp(2 pi i j k / n)."""
    n = input.shape[dim] if n is None else n
    x = _resized(as_complex(_floating(input)), n, dim, "ifft")
    return _scaled(_transformed(x, 1), n, norm, False).movedim(-1, dim)


def rfft(input: Tensor, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Complex:
    """The first n // 2 + 1 numbers of the transform of real ones: the others are their conjugates."""
    if input.is_complex():
        raise RuntimeError("rfft expects a real input tensor, but got a complex one")
    n = input.shape[dim] if n is None else n
    return fft(input, n, dim, norm).narrow(dim, 0, n // 2 + 1)


def irfft(input: Any, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Tensor:
    """The n (2 (size - 1)) real numbers whose transform begins with these."""
    n = 2 * (input.shape[dim] - 1) if n is None else n
    x: Complex = _resized(as_complex(_floating(input)), n // 2 + 1, dim, "irfft")
    x = ComplexTensor(x.real, _C.cat([_C.zeros_like(x.imag[..., :1]), x.imag[..., 1:]], -1))  # the first is real, and for an
    if n % 2 == 0:  # even n the last
        x = ComplexTensor(x.real, _C.cat([x.imag[..., :-1], _C.zeros_like(x.imag[..., :1])], -1))
    rest = x[..., 1 : (n + 1) // 2].flip(-1).conj()
    return _scaled(_transformed(_C.cat([x, rest], -1), 1).real, n, norm, False).movedim(-1, dim)


def hfft(input: Any, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Tensor:
    """The real transform of numbers whose second half is the conjugate of the first."""
    n = 2 * (input.shape[dim] - 1) if n is None else n
    return irfft(as_complex(_floating(input)).conj(), n, dim, _OTHER[norm])


def ihfft(input: Tensor, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Complex:
    """Its inverse."""
    return rfft(input, n, dim, _OTHER[norm]).conj()


_OTHER = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _sizes(input: Any, s: Optional[Sequence[int]], dim: Any) -> list[tuple[int, int]]:
    """[(size, dim)] of a transform along several dims."""
    if dim is None:
        dim = range(-len(s), 0) if s is not None else range(-input.dim(), 0)
    dims = [dim] if isinstance(dim, int) else list(dim)
    sizes = [-1] * len(dims) if s is None else list(s)
    if len(sizes) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    return [(input.shape[d] if size == -1 else size, d) for size, d in zip(sizes, dims)]


def fftn(input: Any, s: Any = None, dim: Any = None, norm: Optional[str] = None) -> Complex:
    """fft along several dims."""
    for size, d in _sizes(input, s, dim):
        input = fft(input, size, d, norm)
    return input


def ifftn(input: Any, s: Any = None, dim: Any = None, norm: Optional[str] = None) -> Complex:
    """ifft along several dims."""
    for size, d in _sizes(input, s, dim):
        input = ifft(input, size, d, norm)
    return input


def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: Optional[str] = None) -> Complex:
    """rfft along the last of several dims, fft along the others."""
    *others, (size, d) = _sizes(input, s, dim)
    result = rfft(input, size, d, norm)
    for size, d in others:
        result = fft(result, size, d, norm)
    return result


def irfftn(input: Any, s: Any = None, dim: Any = None, norm: Optional[str] = None) -> Tensor:
    """irfft along the last of several dims, ifft along the others."""
    *others, (size, d) = _sizes(input, s, dim)
    for n, other in others:
        input = ifft(input, n, other, norm)
    last = 2 * (size - 1) if s is None or list(s)[-1] == -1 else size
    return irfft(input, last, d, norm)


def fft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: Optional[str] = None) -> Complex:
    """fft along two dims."""
    return fftn(input, s, dim, norm)


def ifft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: Optional[str] = None) -> Complex:
    """ifft along two dims."""
    return ifftn(input, s, dim, norm)


def rfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: Optional[str] = None) -> Complex:
    """rfft along the second of two dims, fft along the first."""
    return rfftn(input, s, dim, norm)


def irfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: Optional[str] = None) -> Tensor:
    """irfft along the second of two dims, ifft along the first."""
    return irfftn(input, s, dim, norm)


def hfftn(input: Any, s: Any = None, dim: Any = None, norm: Optional[str] = None) -> Tensor:
    """hfft along the last of several dims, fft along the others."""
    return irfftn(as_complex(_floating(input)).conj(), s, dim, _OTHER[norm])


def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: Optional[str] = None) -> Complex:
    """ihfft along the last of several dims, ifft along the others."""
    return rfftn(input, s, dim, _OTHER[norm]).conj()


def hfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: Optional[str] = None) -> Tensor:
    """hfft along the second of two dims, fft along the first."""
    return hfftn(input, s, dim, norm)


def ihfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: Optional[str] = None) -> Complex:
    """ihfft along the second of two dims, ifft along the first."""
    return ihfftn(input, s, dim, norm)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """[0, 1, ..., -2, -1] / (n d): the frequencies of fft's results."""
    places = _C.arange(n)
    places = _C.where(places < (n + 1) // 2, places, places - n)
    return (places.to(dtype or _C.get_default_dtype()) * (1 / (n * d))).requires_grad_(requires_grad)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """[0, 1, ..., n // 2] / (n d): the frequencies of rfft's results."""
    return (_C.arange(n // 2 + 1).to(dtype or _C.get_default_dtype()) * (1 / (n * d))).requires_grad_(requires_grad)


def _shifted(input: Any, dim: Any, amount: Any) -> Any:
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    for d in dims:
        input = _C.roll(input, amount(input.shape[d]), d)
    return input


def fftshift(input: Any, dim: Any = None) -> Any:
    """Frequency 0 in the middle."""
    return _shifted(input, dim, lambda n: n // 2)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """Its inverse."""
    return _shifted(input, dim, lambda n: (n + 1) // 2)
