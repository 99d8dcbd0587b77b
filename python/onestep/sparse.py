"""Sparse tensors: the places and values of what is not 0, as graphs of many nodes have them. A product with a dense matrix is a sum of
rows of it, differentiable in both; for other ops there is to_dense().

Ops reach a sparse tensor by PyTorch's own protocol for what is like a tensor (`__torch_function__`)."""

from __future__ import annotations

from typing import Any

import onestep
from onestep import _C
from onestep._C import Size, Tensor
from onestep._missing import module_getattr

__all__ = ["DoubleTensor", "FloatTensor", "SparseTensor", "addmm", "mm", "sparse_coo_tensor", "spmm"]
Sparse = Any  # a SparseTensor, in annotations: the ops of tensors take it


class SparseTensor:
    """indices [dims, n] of a tensor of `shape`, and values [n]; 0 at all other places. Values at one place are added."""

    is_sparse = True
    layout = "torch.sparse_coo"
    __class__ = property(lambda self: Tensor)  # type: ignore[assignment]  # what programs ask is whether it is a tensor

    def __init__(self, indices: Tensor, values: Tensor, shape: Any, coalesced: bool = False) -> None:
        self._places, self._entries, self.shape, self._coalesced = indices, values, Size(shape), coalesced

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        rule = _RULES.get(func.__name__)
        if rule is None:
            raise NotImplementedError(f"{func.__name__}: not for sparse tensors (use to_dense())")
        return rule(*args, **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(f"'SparseTensor' object has no attribute '{name}'")
        raise NotImplementedError(f"{name}: not for sparse tensors (use to_dense())")

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
        return zeros.index_put((self._flat(),), self._entries, accumulate=not self._coalesced).view(self.shape)

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
        return mm(self, other)

    def __rmatmul__(self, other: Tensor) -> Tensor:
        return mm(other, self)

    matmul = mm = mv = __matmul__

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


def mm(mat1: Sparse, mat2: Any) -> Tensor:
    """mat1 @ mat2 of a sparse matrix and a dense matrix or vector: for each value the row of mat2 at its column, added to its row."""
    if type(mat1) is not SparseTensor:  # it is no sparse tensor, or a dense one met a sparse one
        if type(mat2) is SparseTensor:
            raise NotImplementedError("mm: of a dense and a sparse matrix is not here (use mat2.t() @ mat1.t(), transposed)")
        return _C.mm(mat1, mat2)
    if type(mat2) is SparseTensor:
        raise NotImplementedError("mm: of two sparse matrices is not here (use mat2.to_dense())")
    if len(mat1.shape) != 2 or mat2.dim() not in (1, 2) or mat1.shape[1] != mat2.shape[0]:
        raise _C.ShapeError(f"mm: shapes {list(mat1.shape)} and {list(mat2.shape)} do not fit")
    rows, columns = mat1._indices()
    values = mat1._values() if mat2.dim() == 1 else mat1._values().unsqueeze(1)
    return mat2.new_zeros(mat1.shape[:1] + mat2.shape[1:]).index_add(0, rows, values * mat2[columns])


spmm = mm


def addmm(mat: Tensor, mat1: Sparse, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * mat + alpha * mat1 @ mat2."""
    return beta * mat + alpha * mm(mat1, mat2)


def FloatTensor(indices: Tensor, values: Tensor, size: Any = None) -> Sparse:
    """A sparse tensor of float32 values."""
    return sparse_coo_tensor(indices, values, size, dtype=_C.float32)


def DoubleTensor(indices: Tensor, values: Tensor, size: Any = None) -> Sparse:
    """A sparse tensor of float64 values."""
    return sparse_coo_tensor(indices, values, size, dtype=_C.float64)


_RULES = {**dict.fromkeys(("mm", "matmul", "mv"), mm), "addmm": addmm, "is_tensor": lambda x: True, "is_complex": SparseTensor.is_complex,
          **{name: getattr(SparseTensor, name) for name in ("t", "to_dense", "clone", "detach")}}  # fmt: skip
__getattr__ = module_getattr("torch.sparse")
