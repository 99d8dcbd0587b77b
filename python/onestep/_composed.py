"""Ops of torch that are a few others: functions and methods."""

from __future__ import annotations

import math

from onestep import _C
from onestep._C import Tensor

__all__: list[str] = []


def _op(function):
    """Makes a function of the module a method of Tensor, too."""
    __all__.append(function.__name__)
    setattr(Tensor, function.__name__, function)
    return function


def _method(function):
    setattr(Tensor, function.__name__, function)
    return function


# ---- elementwise


@_op
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    return input


@_op
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), x clamped to [eps, 1 - eps] where eps is given."""
    x = input if eps is None else input.clamp(eps, 1 - eps)
    return (x / (1 - x)).log()


@_op
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """log2(2^a + 2^b) without overflow."""
    return _C.logaddexp(input * math.log(2), other * math.log(2)) / math.log(2)


@_op
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """input times 2^other."""
    return input * _C.pow(2.0, other)


@_op
def signbit(input: Tensor) -> Tensor:
    """Whether the sign is minus, that of -0.0, too."""
    return (input < 0) | ((input == 0) & (_C.reciprocal(input) < 0)) if input.is_floating_point() else input < 0


@_op
def copysign(input: Tensor, other) -> Tensor:
    """|input| with the sign of other."""
    input = input if input.is_floating_point() else input.to(_C.get_default_dtype())
    other = other if isinstance(other, Tensor) else _C.tensor(float(other))
    return _C.where(signbit(other), -input.abs(), input.abs())


@_op
def isreal(input: Tensor) -> Tensor:
    """True everywhere: there are no complex numbers."""
    return _C.ones_like(input, dtype=_C.bool)


# ---- shapes


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


@_method
def sum_to_size(self: Tensor, *size) -> Tensor:
    """The sum over the dims in which `size` is 1 or missing."""
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    lead = self.dim() - len(size)
    dims = list(range(lead)) + [lead + i for i, n in enumerate(size) if n == 1 and self.shape[lead + i] != 1]
    return (self.sum(dims, keepdim=True) if dims else self).reshape(size)


@_op
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None):
    """The elements without those that equal the one before them."""
    if dim is not None:
        raise NotImplementedError("unique_consecutive: dim (use unique)")
    flat = input.reshape(-1)
    first = _C.cat([_C.ones(min(1, flat.numel()), dtype=_C.bool), flat[1:] != flat[:-1]])
    places = first.long().cumsum(0) - 1
    found = [flat[first]]
    if return_inverse:
        found.append(places.reshape(input.shape))
    if return_counts:
        found.append(_C.bincount(places))
    return found[0] if len(found) == 1 else tuple(found)


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
    positions = _C.arange(self.numel()).reshape(self.shape)[tuple(indices)]
    added = values.to(self.dtype).expand(positions.shape).reshape(-1)
    flat = self.reshape(-1).index_add(0, positions.reshape(-1), added)
    return self.copy_(flat.reshape(self.shape))


@_method
def fill_diagonal_(self: Tensor, fill_value, wrap: bool = False) -> Tensor:
    """Sets the diagonal of a matrix."""
    if wrap:
        raise NotImplementedError("fill_diagonal_: wrap=True")
    self.diagonal().fill_(fill_value)
    return self


def _in_place(name: str):
    op = getattr(Tensor, name)

    def method(self: Tensor, *args, **keywords) -> Tensor:
        return self.copy_(op(self, *args, **keywords))

    method.__name__ = name + "_"
    method.__doc__ = f"{name}, whose values the tensor itself takes."
    return method


for _name in """absolute negative arccos arccosh arcsin arcsinh arctan arctan2 arctanh fix true_divide logit ldexp copysign cumsum
    cumprod addmm addmv baddbmm eq ne lt le gt ge greater greater_equal less less_equal not_equal""".split():
    _method(_in_place(_name))
del _name

# ---- sums and products


@_op
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta input + alpha (all products of two vectors)"""
    return beta * input + alpha * _C.outer(vec1, vec2)


@_op
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta input + alpha (sum of the products of pairs of matrices)"""
    return beta * input + alpha * _C.bmm(batch1, batch2).sum(0)


@_op
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Sum of products of two vectors."""
    return _C.dot(input, other)


@_op
def cov(input: Tensor, *, correction: int = 1) -> Tensor:
    """The covariances of the rows, whose columns are observations."""
    x = _C.atleast_2d(input)
    x = x - x.mean(1, keepdim=True)
    result = x @ x.T / (x.shape[1] - correction)
    return result.squeeze() if input.dim() < 2 else result


@_op
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of the rows, whose columns are observations."""
    c = _C.atleast_2d(cov(input))
    scale = c.diagonal().sqrt()
    result = (c / scale[:, None] / scale[None, :]).clip(-1, 1)
    return result.squeeze() if input.dim() < 2 else result


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode=None) -> Tensor:
    """The distances between the rows of x1 [..., m, d] and of x2 [..., n, d]: [..., m, n]"""
    return _C.norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """The integral by trapezoids along `dim`."""
    n = y.shape[dim]
    means = (y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)) / 2
    return (means * (dx if x is None else _C.diff(x, dim=-1))).sum(dim)


@_op
def quantile(input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The q-quantiles along `dim`, those of q in front; linear between two elements."""
    if interpolation != "linear":
        raise NotImplementedError(f"quantile: interpolation={interpolation!r}")
    q = q if isinstance(q, Tensor) else _C.tensor(float(q), dtype=input.dtype)
    x = input.reshape(-1) if dim is None else input.movedim(dim, -1)
    values = x.sort(-1)[0]
    place = q.reshape(-1) * (x.shape[-1] - 1)
    low = place.floor()
    below = values.index_select(-1, low.long())
    above = values.index_select(-1, place.ceil().long())
    result = _C.where(values.isnan().any(-1, keepdim=True), float("nan"), below + (place - low) * (above - below)).movedim(-1, 0)
    if keepdim:
        result = result.unsqueeze(1 + dim % input.dim()) if dim is not None else result.reshape([-1] + [1] * input.dim())
    return result if q.dim() else result.squeeze(0)


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


@_method
def is_signed(self: Tensor) -> bool:
    return self.dtype.is_signed


@_method
def as_subclass(self: Tensor, cls) -> Tensor:
    """The same elements as an object of another class."""
    return Tensor._make_subclass(cls, self, self.requires_grad)


@_method
def new(self: Tensor, *args) -> Tensor:
    """A tensor of this one's dtype: of sizes, or of data."""
    if len(args) == 1 and not isinstance(args[0], int):
        return _C.tensor(args[0], dtype=self.dtype)
    return _C.empty(args or (0,), dtype=self.dtype)


class _Storage:
    """What programs ask of a storage: where it is and how large."""

    def __init__(self, tensor: Tensor):
        self._tensor = tensor._base if tensor._base is not None else tensor

    def data_ptr(self) -> int:
        return self._tensor.data_ptr()

    def nbytes(self) -> int:
        return self._tensor.nbytes

    def __len__(self) -> int:
        return self._tensor.numel()

    size = __len__


@_method
def storage(self: Tensor) -> _Storage:
    """The memory that views share."""
    return _Storage(self)


@_method
def untyped_storage(self: Tensor) -> _Storage:
    """The memory that views share."""
    return _Storage(self)


__all__ += ["cdist", "trapezoid"]
