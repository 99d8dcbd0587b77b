"""Ops of torch that are a few others: functions and methods."""

from __future__ import annotations

import itertools
import math

from onestep import _C
from onestep._C import Tensor
from onestep._out import with_out

__all__: list[str] = []


def _op(function):
    """Makes a function of the module a method of Tensor, too."""
    __all__.append(function.__name__)
    setattr(Tensor, function.__name__, function)
    return with_out(function, of_tensor=True)


def _method(function):
    setattr(Tensor, function.__name__, function)
    return function


# ---- elementwise


@_op
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    return input


@_op
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of p dimensions: p (p - 1) / 4 log(pi) and lgamma(x - i / 2) for i < p; x > (p - 1) / 2."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = input if input.is_floating_point() else input.to(_C.get_default_dtype())
    halves = 0.5 * _C.arange(p, dtype=x.dtype)
    return _C.lgamma(x.unsqueeze(-1) - halves).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


@_op
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """log2(2^a + 2^b) without overflow."""
    return _C.logaddexp(input * math.log(2), other * math.log(2)) / math.log(2)


@_op
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """input times 2^other."""
    return input * _C.pow(2.0, other)


@_op
def isreal(input) -> Tensor:
    """Whether the imaginary part is 0: true of all real numbers."""
    return input.imag == 0 if input.is_complex() else _C.ones_like(input, dtype=_C.bool)


def real(input: Tensor) -> Tensor:
    """The real part: of a real tensor itself."""
    return input.real


__all__.append("real")
for _name in ("conj", "conj_physical", "resolve_conj", "resolve_neg"):
    __all__.append(_name)
    globals()[_name] = lambda input, name=_name: getattr(input, name)() if input.is_complex() else input
    globals()[_name].__doc__ = "What it is for complex numbers; of a real tensor itself."
    globals()[_name].__name__ = _name
    setattr(Tensor, _name, globals()[_name])


# ---- shapes


def _at_least(name: str):
    one = getattr(_C, name)

    def function(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return one(tensors[0])
        return tuple(one(tensor) for tensor in (tensors[0] if len(tensors) == 1 else tensors))

    function.__name__, function.__doc__ = name, one.__doc__
    return function


atleast_1d, atleast_2d, atleast_3d = map(_at_least, ("atleast_1d", "atleast_2d", "atleast_3d"))
__all__ += ["atleast_1d", "atleast_2d", "atleast_3d"]


@_op
def hsplit(input: Tensor, indices_or_sections) -> tuple[Tensor, ...]:
    """tensor_split along dim 1, of a vector along dim 0."""
    return _C.tensor_split(input, indices_or_sections, 0 if input.dim() == 1 else 1)


@_op
def vsplit(input: Tensor, indices_or_sections) -> tuple[Tensor, ...]:
    """tensor_split along dim 0."""
    return _C.tensor_split(input, indices_or_sections, 0)


@_op
def dsplit(input: Tensor, indices_or_sections) -> tuple[Tensor, ...]:
    """tensor_split along dim 2."""
    return _C.tensor_split(input, indices_or_sections, 2)


@_op
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on its diagonal."""
    return _C.diag(input.reshape(-1), offset)


@_op
def adjoint(input: Tensor) -> Tensor:
    """The last two dims swapped."""
    return input.mT


@_op
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of input whose place `index` along `dim` holds src."""
    result = input.clone()
    result.select(dim, index).copy_(src)
    return result


@_op
def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start=None, end=None, step: int = 1) -> Tensor:
    """A copy of input whose slice along `dim` holds src."""
    result = input.clone()
    result[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)] = src
    return result


@_op
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of input whose diagonal is src."""
    result = input.clone()
    result.diagonal(offset, dim1, dim2).copy_(src)
    return result


@_op
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """narrow, as a copy."""
    return input.narrow(dim, start, length).clone()


@_op
def msort(input: Tensor) -> Tensor:
    """The elements sorted along dim 0."""
    return _C.sort(input, dim=0)[0]


def isin(elements, test_elements, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is one of test_elements; either may be a number."""
    dtype = _C.result_type(elements, test_elements)
    elements, tests = (_C.as_tensor(x).to(dtype) for x in (elements, test_elements))
    if tests.numel() == 0:
        return _C.full(elements.shape, invert)
    ordered = tests.flatten().sort()[0]
    places = _C.searchsorted(ordered, elements.contiguous()).clamp(max=ordered.numel() - 1)
    return (ordered[places] != elements) if invert else (ordered[places] == elements)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, in order: [n] -> [choices, r]."""
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(choose(range(input.numel()), r))
    return input[_C.tensor(places, dtype=_C.int64).reshape(len(places), r)]


__all__ += ["isin", "combinations"]


for _name in ("chunk", "split"):
    __all__.append(f"unsafe_{_name}")
    globals()[f"unsafe_{_name}"] = getattr(_C, _name)
    setattr(Tensor, f"unsafe_{_name}", getattr(Tensor, _name))


@_op
def matrix_power(input: Tensor, n: int) -> Tensor:
    """A square matrix, or a batch of them, times itself: n factors; n must not be negative."""
    if input.dim() < 2 or input.size(-1) != input.size(-2):
        raise RuntimeError(f"linalg.matrix_power: A must be batches of square matrices, but they are {list(input.shape)}")
    if n < 0:
        raise NotImplementedError("linalg.matrix_power: a negative power: there is no inverse of a matrix")
    if n == 0:
        return _C.eye(input.size(-1), dtype=input.dtype).expand(input.shape).clone()
    result = input.clone()
    for bit in f"{n:b}"[1:]:
        result = _C.matmul(result, result)
        result = _C.matmul(result, input) if bit == "1" else result
    return result


@_method
def sum_to_size(self: Tensor, *size) -> Tensor:
    """The sum over the dims in which `size` is 1 or missing."""
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    if not size:
        return self.sum()
    lead = self.dim() - len(size)
    dims = list(range(lead)) + [lead + i for i, n in enumerate(size) if n == 1 and self.shape[lead + i] != 1]
    return (self.sum(dims, keepdim=True) if dims else self).reshape(size)


# ---- writing


@_op
def index_put(input: Tensor, indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """input with input[indices] = values, or += with accumulate."""
    return index_put_(input.clone(), indices, values, accumulate)


@_method
def index_put_(self: Tensor, indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """self[indices] = values, or += with accumulate, where repeated positions add up."""
    if not accumulate:
        self[tuple(indices)] = values
        return self
    return _C._add_at(self, tuple(indices), values)


@_method
def fill_diagonal_(self: Tensor, fill_value, wrap: bool = False) -> Tensor:
    """Sets the elements whose indexes are all the same."""
    if wrap:
        raise NotImplementedError("fill_diagonal_: wrap=True")
    if self.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.dim() > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    diagonal = self
    while diagonal.dim() > 1:
        diagonal = diagonal.diagonal(0, 0, 1).movedim(-1, 0)
    diagonal.fill_(fill_value)
    return self


def _in_place(name: str):
    op = getattr(Tensor, name)

    def method(self: Tensor, *args, **keywords) -> Tensor:
        recorded = any(isinstance(x, Tensor) and x.requires_grad for x in (self, *args))
        values = self.clone() if recorded and _C.is_grad_enabled() else self  # which gradients may need as they were
        result = op(values, *args, **keywords)
        if result.is_floating_point() and not self.is_floating_point():
            raise RuntimeError(f"{name}_: a result of {result.dtype} does not fit a tensor of {self.dtype} (use {name})")
        return self.copy_(result)

    method.__name__ = name + "_"
    method.__doc__ = f"{name}, whose values the tensor itself takes."
    return method


for _name in """absolute negative arccos arccosh arcsin arcsinh arctan arctan2 arctanh fix true_divide logit ldexp mvlgamma polygamma
    copysign cumsum cumprod addmm addmv baddbmm eq ne lt le gt ge greater greater_equal less less_equal not_equal""".split():
    _method(_in_place(_name))
del _name

# ---- what has one answer here


@_method
def is_same_size(self: Tensor, other: Tensor) -> bool:
    return self.shape == other.shape


@_method
def is_shared(self: Tensor) -> bool:
    return False


@_method
def share_memory_(self: Tensor) -> Tensor:
    """The tensor itself: workers are threads."""
    return self


setattr(Tensor, "name", None)  # no tensor has one
for _name in ("is_xpu", "is_ipu", "is_mtia", "is_maia", "is_vulkan", "is_mkldnn", "is_sparse_csr"):
    setattr(Tensor, _name, False)
for _name in ("swapaxes_", "swapdims_"):
    setattr(Tensor, _name, getattr(Tensor, "transpose_"))


@_method
def is_signed(self: Tensor) -> bool:
    return self.dtype.is_signed


@_method
def as_subclass(self: Tensor, cls) -> Tensor:
    """The same elements as an object of another class."""
    return Tensor._make_subclass(cls, self, self.requires_grad)


for _name in (
    "addmv_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_", "arctanh_", "clamp_", "clamp_max_", "clamp_min_", "clip_",
    "detach_", "fix_", "index_put_", "ldexp_", "logit_", "nan_to_num_", "negative_", "xlogy_",
):  # fmt: skip
    __all__.append(_name)
    globals()[_name] = getattr(Tensor, _name)


@_method
def to_dense(self: Tensor, dtype=None, *, masked_grad=None) -> Tensor:
    """The tensor itself: a sparse one has a method of its own."""
    return self if dtype is None else self.to(dtype)


@_method
def to_sparse(self: Tensor):
    """The places and values of what is not 0 (sparse.py)."""
    from onestep import sparse

    return sparse.to_sparse(self)


@_method
def new(self: Tensor, *args) -> Tensor:
    """A tensor of this one's dtype: of sizes, or of data."""
    if len(args) == 1 and not isinstance(args[0], int):
        return _C.tensor(args[0], dtype=self.dtype)
    return _C.empty(args or (0,), dtype=self.dtype)


# ---- what becomes complex


@_method
def cfloat(input: Tensor, memory_format=None):
    """Complex numbers whose imaginary part is 0."""
    from onestep._complex import complex64

    return input.to(complex64)


@_method
def cdouble(input: Tensor, memory_format=None):
    """The same in double."""
    from onestep._complex import complex128

    return input.to(complex128)


@_method
def stft(input: Tensor, *args, **kwargs):
    """onestep.stft."""
    from onestep._signal import stft

    return stft(input, *args, **kwargs)
