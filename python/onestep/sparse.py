"""Sparse tensors: the places and values of what is not 0, as graphs of many nodes have them. A product with a dense matrix is a sum of
rows of it, differentiable in both; for other ops there is to_dense().

Ops reach a sparse tensor by PyTorch's own protocol for what is like a tensor (`__torch_function__`)."""

from __future__ import annotations

import math
from typing import Any

import onestep
from onestep import _C
from onestep._C import Size, Tensor
from onestep._missing import module_getattr

__all__ = ["DoubleTensor", "FloatTensor", "SparseTensor", "addmm", "mm", "sparse_coo_tensor", "spmm"]
Sparse = Any  # a SparseTensor, in annotations: the ops of tensors take it


class NotForSparse(NotImplementedError, AttributeError):
    """An op that sparse tensors do not have; to hasattr() an attribute that is not there."""


def _refuse(name: str) -> Any:
    raise NotForSparse(f"{name}: not for sparse tensors (use to_dense())")


class SparseTensor:
    """indices [dims, n] of a tensor of `shape`, and values [n]; 0 at all other places. Values at one place are added."""

    is_sparse = True
    layout = "torch.sparse_coo"
    __class__ = property(lambda self: Tensor)  # type: ignore[assignment]  # what programs ask is whether it is a tensor
    __array_ufunc__ = None  # NumPy leaves operators to this class

    def __init__(self, indices: Tensor, values: Tensor, shape: Any, coalesced: bool = False) -> None:
        self._places, self._entries, self.shape, self._coalesced = indices, values, Size(shape), coalesced

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        rule = _RULES.get(func.__name__)
        return rule(*args, **(kwargs or {})) if rule else _refuse(func.__name__)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(f"'SparseTensor' object has no attribute '{name}'")
        _refuse(name)

    dtype = property(lambda self: self._entries.dtype)
    device = property(lambda self: self._entries.device)
    requires_grad = property(lambda self: self._entries.requires_grad)
    ndim = property(lambda self: len(self.shape))
    T = property(lambda self: self.t())

    def size(self, dim: int | None = None) -> Any:
        """The shape, or its size at `dim`."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    def is_complex(self) -> bool:
        """False: the values are real."""
        return False

    def is_floating_point(self) -> bool:
        """Whether the values are."""
        return self._entries.is_floating_point()

    def is_coalesced(self) -> bool:
        """Whether the places are known to be in order, each there once."""
        return self._coalesced

    # ---- places and values

    def _indices(self) -> Tensor:
        return self._places

    def _values(self) -> Tensor:
        return self._entries

    def _nnz(self) -> int:
        return self._entries.shape[0]

    def indices(self) -> Tensor:
        """The places of a coalesced tensor [dims, n], in order."""
        return self._if_coalesced("indices", self._places)

    def values(self) -> Tensor:
        """The values of a coalesced tensor, in the order of its places."""
        return self._if_coalesced("values", self._entries)

    def _if_coalesced(self, what: str, value: Tensor) -> Tensor:
        if not self._coalesced:
            raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")
        return value

    def _flat(self) -> Tensor:
        """The place of each value where the dims are one."""
        if math.prod(self.shape) >= 1 << 63:
            raise _C.ShapeError(f"sparse: shape {list(self.shape)} has too many places to be put in order")
        place = _C.zeros(self._nnz(), dtype=_C.int64)
        for index, size in zip(self._places.unbind(0), self.shape):
            place = place * size + index
        return place

    def coalesce(self) -> Sparse:
        """The same tensor with its places in order and each there once."""
        if self._coalesced:
            return self
        places, inverse = _C.unique(self._flat(), return_inverse=True)
        values = self._entries.new_zeros(len(places)).index_add(0, inverse, self._entries)
        indices = _C.stack(onestep.unravel_index(places, self.shape)) if len(places) else self._places
        return SparseTensor(indices, values, self.shape, True)

    def to_dense(self) -> Tensor:
        """The tensor with its zeros."""
        zeros: Any = self._entries.new_zeros(self.shape.numel())
        return zeros.index_put((self._flat(),), self._entries, accumulate=True).view(self.shape)

    def to_sparse(self) -> Sparse:
        """Itself."""
        return self

    # ---- the same places

    def _with(self, values: Tensor) -> Sparse:
        return SparseTensor(self._places, values, self.shape, self._coalesced)

    def to(self, *args: Any, **kwargs: Any) -> Sparse:
        """With the values in another dtype."""
        return self._with(self._entries.to(*args, **kwargs))

    def float(self) -> Sparse:
        """With float32 values."""
        return self.to(_C.float32)

    def double(self) -> Sparse:
        """With float64 values."""
        return self.to(_C.float64)

    def cpu(self) -> Sparse:
        """Itself."""
        return self

    def cuda(self, *args: Any, **kwargs: Any) -> Sparse:
        """Raises: there is only the CPU."""
        return self.to("cuda")

    def clone(self) -> Sparse:
        """A copy."""
        return SparseTensor(self._places.clone(), self._entries.clone(), self.shape, self._coalesced)

    def detach(self) -> Sparse:
        """Outside the graph."""
        return self._with(self._entries.detach())

    def __mul__(self, other: Any) -> Sparse:
        if type(other) not in (int, float):
            raise NotImplementedError("mul: a sparse tensor takes a number (use to_dense())")
        return self._with(self._entries * other)

    __rmul__ = __mul__

    def t(self) -> Sparse:
        """The transposed matrix."""
        if len(self.shape) != 2:
            raise _C.ShapeError(f"t: needs a sparse matrix: got shape {list(self.shape)}")
        return SparseTensor(self._places.flip(0), self._entries, (self.shape[1], self.shape[0]))

    def __matmul__(self, other: Tensor) -> Tensor:
        return matmul(self, other)

    def __rmatmul__(self, other: Tensor) -> Tensor:
        return matmul(other, self)

    matmul = __matmul__

    def mm(self, mat2: Tensor) -> Tensor:
        """The product with a dense matrix."""
        return mm(self, mat2)

    def mv(self, vec: Tensor) -> Tensor:
        """The product with a dense vector."""
        return mv(self, vec)

    def __len__(self) -> int:
        return self.shape[0]

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> Any:
        return SparseTensor, (self._places, self._entries, tuple(self.shape), self._coalesced)

    def __repr__(self) -> str:
        parts = (f"{name}={repr(t.detach())}" for name, t in (("indices", self._places), ("values", self._entries)))
        aligned = (part.replace("\n", "\n" + " " * (7 + part.index("tensor("))) for part in parts)
        grad = ", requires_grad=True" if self.requires_grad else ""
        return "tensor(" + ",\n       ".join(aligned) + f",\n       size={tuple(self.shape)}, nnz={self._nnz()}, layout={self.layout}{grad})"


def sparse_coo_tensor(
    indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    check_invariants: Any = None, is_coalesced: Any = None,
) -> Sparse:  # fmt: skip
    """The tensor with `values` [n] at the places `indices` [dims, n]; without `size` as large as the places need."""
    indices = _C.as_tensor(indices, dtype=_C.int64)
    values = _C.as_tensor(values, dtype=dtype, device=device)
    values = values.expand(indices.shape[-1]) if values.dim() == 0 else values
    if indices.dim() != 2 or values.dim() != 1 or indices.shape[1] != values.shape[0]:
        shapes = f"{list(indices.shape)} and {list(values.shape)}"
        raise _C.ShapeError(f"sparse_coo_tensor: needs indices [dims, n] and values [n], dense dims are not here: got {shapes}")
    size = tuple(i + 1 for i in indices.amax(1).tolist()) if size is None else tuple(size)
    if len(size) != indices.shape[0]:
        raise _C.ShapeError(f"sparse_coo_tensor: {indices.shape[0]} rows of indices do not fit shape {list(size)}")
    if values.shape[0] and ((indices < 0) | (indices >= _C.tensor(size).unsqueeze(1))).any():
        raise _C.ShapeError(f"sparse_coo_tensor: an index is outside shape {list(size)}")
    return SparseTensor(indices, values.detach().requires_grad_() if requires_grad else values, size, bool(is_coalesced))


def to_sparse(x: Tensor) -> Sparse:
    """The places and values of what is not 0. In PyTorch a product with it has a gradient at its zeros, too, which is not here."""
    if x.requires_grad and _C.is_grad_enabled():
        raise NotImplementedError("to_sparse: not for a tensor that requires grad (give sparse_coo_tensor() its places and values)")
    indices = x.nonzero()
    return SparseTensor(indices.t().contiguous(), x[tuple(indices.unbind(1))], x.shape, True)


def _product(name: str, input: Sparse, other: Any, dims: tuple[int, ...]) -> Tensor:
    """For each value of a sparse matrix the row of `other`, which has one of these `dims`, at its column, added to its row."""
    if type(input) is not SparseTensor or type(other) is SparseTensor or not isinstance(other, Tensor):
        raise NotImplementedError(f"{name}: needs a sparse matrix, then a dense operand (use to_dense())")
    if len(input.shape) != 2 or other.dim() not in dims or input.shape[1] != other.shape[0]:
        raise _C.ShapeError(f"{name}: shapes {list(input.shape)} and {list(other.shape)} do not fit")
    if input.dtype != other.dtype:
        raise _C.DTypeError(f"{name}: of dtypes {input.dtype} and {other.dtype}: they must be one")
    rows, columns = input._indices()
    values = input._values() if other.dim() == 1 else input._values().unsqueeze(1)
    return other.new_zeros(input.shape[:1] + other.shape[1:]).index_add(0, rows, values * other[columns])


def mm(input: Sparse, mat2: Any) -> Tensor:
    """input @ mat2 of a sparse and a dense matrix [n, m] x [m, k] -> [n, k]; of two dense ones torch.mm."""
    both_dense = type(input) is not SparseTensor and type(mat2) is not SparseTensor
    return _C.mm(input, mat2) if both_dense else _product("mm", input, mat2, (2,))


def mv(input: Sparse, vec: Tensor) -> Tensor:
    """input @ vec of a sparse matrix and a dense vector [n, m] x [m] -> [n]."""
    return _product("mv", input, vec, (1,))


def matmul(input: Sparse, other: Any) -> Tensor:
    """input @ other of a sparse matrix and a dense matrix or vector."""
    return _product("matmul", input, other, (1, 2))


spmm = mm


def addmm(input: Tensor, mat1: Sparse, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * mat1 @ mat2; where beta is 0, without what is in `input`."""
    product = mm(mat1, mat2)
    onestep.broadcast_to(input, product.shape)  # throws unless it fits
    if input.dtype != product.dtype:
        raise _C.DTypeError(f"addmm: of dtypes {input.dtype} and {product.dtype}: they must be one")
    return alpha * product if beta == 0 else beta * input + alpha * product


def FloatTensor(indices: Tensor, values: Tensor, size: Any = None) -> Sparse:
    """A sparse tensor of float32 values."""
    return sparse_coo_tensor(indices, values, size, dtype=_C.float32)


def DoubleTensor(indices: Tensor, values: Tensor, size: Any = None) -> Sparse:
    """A sparse tensor of float64 values."""
    return sparse_coo_tensor(indices, values, size, dtype=_C.float64)


_RULES = {"mm": mm, "mv": mv, "matmul": matmul, "addmm": addmm, "is_tensor": lambda x: True, "is_complex": SparseTensor.is_complex,
          **{name: getattr(SparseTensor, name) for name in ("t", "to_dense", "clone", "detach")}}  # fmt: skip
for _name in """add radd sub rsub truediv rtruediv floordiv mod pow rpow neg abs iadd isub imul itruediv and or xor invert eq ne lt le gt ge
                bool float int index iter getitem setitem contains array""".split():
    setattr(SparseTensor, f"__{_name}__", lambda self, *args, _name=_name: _refuse(_name))
__getattr__ = module_getattr("torch.sparse")
