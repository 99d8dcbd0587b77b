"""What each op gives for complex tensors (_complex.py)."""

from __future__ import annotations

import itertools
import math
from typing import Any, Callable

from onestep import _C
from onestep._C import Tensor
from onestep._complex import Complex, ComplexDType, ComplexTensor, angle, as_complex, complex128, complex64, polar, view_as_complex, view_as_real


def rule_of(func: Any) -> Callable:
    """What an op of real tensors, a function or a method, is for complex ones; raises where that is not here."""
    name = func.__name__
    if name in _EACH_PART:
        return _each_part(func)
    if name in _MULTILINEAR:
        return _multilinear(func)
    if name not in _RULES:
        raise NotImplementedError(f"{name}: not for complex tensors")
    return _RULES[name]


def _pair(a: Any, b: Any) -> tuple[Complex, Complex]:
    a, b = as_complex(a, b), as_complex(b, a)
    if a.real.dtype != b.real.dtype:
        part = _C.promote_types(a.real.dtype, b.real.dtype)
        a, b = (ComplexTensor(x.real.to(part), x.imag.to(part)) for x in (a, b))
    return a, b


# ---- ops that are those of the parts


def _parts(value: Any, which: str, in_list: bool = False) -> Any:
    """The arguments of a call with one part of each complex tensor; the imaginary part of what is real is 0. Integers are places,
    but in a list."""
    if isinstance(value, ComplexTensor):
        return getattr(value, which)
    if type(value) in (list, tuple):
        return type(value)(_parts(v, which, True) for v in value)
    if isinstance(value, Tensor) and (in_list or value.is_floating_point()) and which == "imag":
        return _C.zeros_like(value)
    return value.to_real() if isinstance(value, ComplexDType) else value


def _joined(real: Any, imag: Any) -> Any:
    return ComplexTensor(real, imag) if isinstance(real, Tensor) else type(real)(map(_joined, real, imag))


def _each_part(func: Callable) -> Callable:
    def call(*args: Any, **kwargs: Any) -> Any:
        results = (
            func(*(_parts(arg, which) for arg in args), **{key: _parts(value, which) for key, value in kwargs.items()}) for which in ("real", "imag")
        )
        return _joined(*results)

    return call


_EACH_PART = frozenset(
    "reshape reshape_as view_as transpose permute t flatten unflatten unsqueeze squeeze expand expand_as repeat tile "
    "repeat_interleave cat concat stack hstack vstack chunk split tensor_split unbind select narrow index_select gather "
    "take_along_dim flip fliplr flipud roll rot90 movedim swapaxes swapdims diagonal diag tril triu sum mean cumsum clone "
    "contiguous detach cpu neg negative zeros_like empty_like zeros empty broadcast_to atleast_1d atleast_2d atleast_3d "
    "unfold new_zeros new_empty diag_embed trace ravel index_add".split()
)


# ---- products: a sum over the parts of every operand, with i^2 = -1


def _multilinear(func: Callable) -> Callable:
    def call(*args: Any, **kwargs: Any) -> Any:
        if isinstance(args[-1], (list, tuple)):  # _einsum(equation, operands)
            return _product(lambda *parts: func(*args[:-1], list(parts), **kwargs), args[-1])
        if any(not isinstance(x, (Tensor, ComplexTensor)) for x in args):  # a number
            a, b = _pair(*args)
            return _product(lambda *parts: func(*parts, **kwargs), (a, b))
        return _product(lambda *parts: func(*parts, **kwargs), args)

    return call


def _product(func: Callable, operands: Any) -> Complex:
    part = next(x.real.dtype for x in operands if isinstance(x, ComplexTensor))
    for x in operands:
        dtype = x.real.dtype if isinstance(x, ComplexTensor) else x.dtype
        part = _C.promote_types(part, dtype) if dtype.is_floating_point else part
    factors = [(x.real.to(part), x.imag.to(part)) if isinstance(x, ComplexTensor) else (x.to(part),) for x in operands]
    sums: dict[int, Any] = {}
    for choice in itertools.product(*(range(len(parts)) for parts in factors)):
        value = func(*(parts[i] for parts, i in zip(factors, choice)))
        half, minus = sum(choice) % 2, sum(choice) % 4 > 1
        value = -value if minus and half not in sums else value
        sums[half] = value if half not in sums else sums[half] - value if minus else sums[half] + value
    return ComplexTensor(sums[0], sums[1])


_MULTILINEAR = frozenset("mul multiply matmul mm bmm mv dot outer ger kron _einsum _tensordot inner".split())


# ---- the others


def _add(a: Any, b: Any, *, alpha: Any = 1) -> Complex:
    a, b = _pair(a, b if alpha == 1 else b * alpha)
    return ComplexTensor(a.real + b.real, a.imag + b.imag)


def _sub(a: Any, b: Any, *, alpha: Any = 1) -> Complex:
    return _add(a, -b if alpha == 1 else b * -alpha)


def _div(a: Any, b: Any, *, rounding_mode: Any = None) -> Complex:
    if rounding_mode is not None:
        raise RuntimeError("div: complex numbers are not rounded")
    if isinstance(a, ComplexTensor) and not isinstance(b, (ComplexTensor, complex)):
        return ComplexTensor(a.real / b, a.imag / b)
    a, b = _pair(a, b)
    scale = _C.maximum(b.real.abs(), b.imag.abs()).detach()  # squares neither overflow nor vanish
    real, imag = b.real / scale, b.imag / scale
    square = (real * real + imag * imag) * scale
    return ComplexTensor((a.real * real + a.imag * imag) / square, (a.imag * real - a.real * imag) / square)


def _conj(z: Any) -> Complex:
    return ComplexTensor(z.real, -z.imag)


def _abs(z: Complex) -> Tensor:
    zero = (z.real == 0) & (z.imag == 0)  # where the gradient is 0, as in PyTorch
    return _C.hypot(z.real.masked_fill(zero, 1.0), z.imag).masked_fill(zero, 0.0)


def _exp(z: Complex) -> Complex:
    return polar(z.real.exp(), z.imag)


def _log(z: Complex) -> Complex:
    return ComplexTensor(_abs(z).log(), angle(z))


def _sqrt(z: Complex) -> Complex:
    right = z.real >= 0
    large = ((_C.where(right, z.real, -z.real) + _abs(z)) / 2).sqrt()
    small = z.imag.abs() / (2 * large.masked_fill(large == 0, 1.0))
    imag = _C.where(right, small, large)
    return ComplexTensor(_C.where(right, large, small), _C.where(z.imag < 0, -imag, imag))


def _pow(a: Any, b: Any) -> Any:
    if not isinstance(b, int):
        return _exp(_log(as_complex(a, b)) * b)
    if b < 0:
        return 1 / _pow(a, -b)
    if b == 0:
        return as_complex(_C.ones_like(a.real))
    half = _pow(a, b // 2) if b > 1 else None
    return a if half is None else half * half if b % 2 == 0 else half * half * a


def _sgn(z: Complex) -> Any:
    size = _abs(z)
    return _where(size == 0, 0, z / size.masked_fill(size == 0, 1.0))


def _linear(x: Any, weight: Any, bias: Any = None) -> Complex:
    product = x @ weight.mT
    return product if bias is None else product + bias


def _prod(z: Complex, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        z, dim = z.flatten(), 0
    result = z.narrow(dim, 0, 1)
    for i in range(1, z.size(dim)):
        result = result * z.narrow(dim, i, 1)
    return result if keepdim else result.squeeze(dim)


def _cumprod(z: Complex, dim: int) -> Any:
    products = [z.narrow(dim, 0, 1)]
    for i in range(1, z.size(dim)):
        products.append(products[-1] * z.narrow(dim, i, 1))
    return _C.cat(products, dim)


def _isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    a, b = _pair(a, b)
    return (_abs(a - b) <= atol + rtol * _abs(b)) | _eq(a, b) | ((_isnan(a) & _isnan(b)) if equal_nan else False)


def _eq(a: Any, b: Any) -> Tensor:
    a, b = _pair(a, b)
    return (a.real == b.real) & (a.imag == b.imag)


def _isnan(z: Complex) -> Tensor:
    return z.real.isnan() | z.imag.isnan()


def _where(condition: Tensor, a: Any, b: Any) -> Complex:
    a, b = _pair(a, b)
    return ComplexTensor(_C.where(condition, a.real, b.real), _C.where(condition, a.imag, b.imag))


def _view(x: Any, *shape: Any) -> Any:
    """Of another shape; a complex tensor as the real one of its parts side by side, and the other way."""
    if isinstance(x, ComplexTensor):
        return view_as_real(x).flatten(-2) if isinstance(shape[0], _C.dtype) else _each_part(Tensor.view)(x, *shape)
    return view_as_complex(x.unflatten(-1, (-1, 2)))


def _pad(z: ComplexTensor, pad: Any, mode: str = "constant", value: Any = None) -> Complex:
    value = complex(value or 0)
    return ComplexTensor(_C.pad(z.real, pad, mode, value.real), _C.pad(z.imag, pad, mode, value.imag))


def _to(z: Any, *args: Any, **kwargs: Any) -> Any:
    """To a complex dtype; to a real one, which leaves the real part."""
    dtype = next((a.dtype if isinstance(a, (Tensor, ComplexTensor)) else a for a in (*args, *kwargs.values())
                  if isinstance(a, (ComplexDType, Tensor, ComplexTensor, _C.dtype))), None)  # fmt: skip
    if isinstance(dtype, ComplexDType):
        real = z.real.to(dtype.to_real())
        return ComplexTensor(real, z.imag.to(real.dtype) if isinstance(z, ComplexTensor) else _C.zeros_like(real))
    return z if dtype is None else z.real.to(dtype)


def _tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Complex:
    """Of a number, nested lists of numbers, an array or a tensor."""

    def part(value: Any, which: str) -> Any:
        return [part(v, which) for v in value] if isinstance(value, (list, tuple)) else getattr(value, which)

    if dtype is None and str(getattr(data, "dtype", "")) == "complex128":  # of NumPy
        dtype = complex128
    data = data.tolist() if hasattr(data, "tolist") else data
    real = _C.get_default_dtype() if dtype is None else dtype.to_real()
    parts = (_C.tensor(part(data, which), dtype=real) for which in ("real", "imag"))
    return _leaf(ComplexTensor(*parts), requires_grad)


def _random(fill: Callable[[Tensor, Any], Tensor]) -> Callable:
    """Both parts of a number are drawn one after the other."""

    def call(*size: Any, dtype: ComplexDType, generator: Any = None, requires_grad: bool = False, device: Any = None) -> Complex:
        shape = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
        return _leaf(view_as_complex(fill(_C.empty(*shape, 2, dtype=dtype.to_real()), generator)), requires_grad)

    return call


def _like(make: Callable) -> Callable:
    return lambda z, *, dtype=None, **kwargs: make(tuple(z.shape), dtype=dtype or z.dtype, **kwargs)


def _leaf(z: Complex, requires_grad: bool) -> Complex:
    return z.requires_grad_() if requires_grad else z


def _full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Complex:
    value = as_complex(fill_value, dtype and _C.empty(0, dtype=dtype.to_real()))
    return _leaf(ComplexTensor(value.real.expand(size).clone(), value.imag.expand(size).clone()), requires_grad)


def _real(make: Callable) -> Callable:
    """What makes real numbers, as complex ones."""

    def call(*size: Any, dtype: ComplexDType, device: Any = None, requires_grad: bool = False) -> Complex:
        return _leaf(as_complex(make(*size, dtype=dtype.to_real())), requires_grad)

    return call


_ONES = _real(_C.ones)
_RANDN = _random(lambda x, generator: x.normal_(0, math.sqrt(0.5), generator=generator))
_RAND = _random(lambda x, generator: x.uniform_(generator=generator))

_RULES: dict[str, Callable] = {
    **{name: _each_part for name in _EACH_PART},
    **{name: _multilinear for name in _MULTILINEAR},
    **dict.fromkeys(("sub", "subtract"), _sub),
    **dict.fromkeys(("div", "divide", "true_divide"), _div),
    **dict.fromkeys(("conj", "conj_physical"), _conj),
    **dict.fromkeys(("resolve_conj", "resolve_neg", "positive"), lambda z: z),
    **dict.fromkeys(("abs", "absolute"), _abs),
    "add": _add, "angle": angle, "exp": _exp, "log": _log, "sqrt": _sqrt, "pow": _pow, "sgn": _sgn,
    "square": lambda z: z * z, "reciprocal": lambda z: 1 / z, "rsqrt": lambda z: 1 / _sqrt(z),
    "sin": lambda z: ComplexTensor(z.real.sin() * z.imag.cosh(), z.real.cos() * z.imag.sinh()),
    "cos": lambda z: ComplexTensor(z.real.cos() * z.imag.cosh(), -z.real.sin() * z.imag.sinh()),
    "sinh": lambda z: ComplexTensor(z.real.sinh() * z.imag.cos(), z.real.cosh() * z.imag.sin()),
    "cosh": lambda z: ComplexTensor(z.real.cosh() * z.imag.cos(), z.real.sinh() * z.imag.sin()),
    **dict.fromkeys(("linear", "_linear"), _linear), "prod": _prod, "cumprod": _cumprod,
    "tanh": lambda z: z.sinh() / z.cosh(), "_vector_norm": lambda z, *args, **kwargs: _C._vector_norm(_abs(z), *args, **kwargs),
    "norm": lambda z, *args, **kwargs: _abs(z).norm(*args, **kwargs),
    "isclose": _isclose, "allclose": lambda a, b, *args, **kwargs: bool(_isclose(a, b, *args, **kwargs).all()),
    "eq": _eq, "ne": lambda a, b: ~_eq(a, b), "equal": lambda a, b: a.shape == b.shape and bool(_eq(a, b).all()),
    "isnan": _isnan, "isinf": lambda z: z.real.isinf() | z.imag.isinf(), "isfinite": lambda z: z.real.isfinite() & z.imag.isfinite(),
    "isreal": lambda z: z.imag == 0,
    "view_as_real": view_as_real, "view_as_complex": view_as_complex,
    "is_complex": lambda z: True, "is_floating_point": lambda z: False, "numel": lambda z: z.real.numel(),
    "is_contiguous": lambda z: z.real.is_contiguous() and z.imag.is_contiguous(),
    "where": _where, "masked_fill": lambda z, mask, value: _where(mask, value, z),
    "adjoint": lambda z: z.mH, "is_tensor": lambda z: True,
    "view": _view, "pad": _pad, "to": _to, "type": _to, "type_as": _to,
    "cfloat": lambda z: _to(z, complex64), "cdouble": lambda z: _to(z, complex128),
    **dict.fromkeys(("tensor", "as_tensor", "asarray", "from_numpy"), _tensor), "full": _full, "ones": _ONES, "eye": _real(_C.eye),
    "randn": _RANDN, "rand": _RAND,
    "ones_like": _like(_ONES), "randn_like": _like(_RANDN), "rand_like": _like(_RAND),
}  # fmt: skip
