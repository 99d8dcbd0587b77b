"""Norms and products (torch.linalg), as far as they are there."""

from __future__ import annotations

import math

from onestep import _C
from onestep._C import Tensor, cross  # noqa: F401
from onestep._composed import matrix_power as _matrix_power


def vector_norm(x: Tensor, ord: float = 2, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """(sum |x|^ord)^(1 / ord) over `dim`, all of them by default."""
    return _C._vector_norm(x, ord, dim, keepdim, dtype=dtype)


def matrix_norm(x: Tensor, ord="fro", dim=(-2, -1), keepdim: bool = False, *, dtype=None) -> Tensor:
    """Of the matrices in two dims: "fro", the root of the sum of squares; 1 and -1, the largest and least sum of |x| of a
    column; inf and -inf, of a row. Those of singular values ("nuc", 2, -2) are not there."""
    if x.dim() < 2 or len(dim) != 2:
        raise _C.ShapeError(f"linalg.matrix_norm: needs matrices and two dims: got shape {list(x.shape)}, dim {dim}")
    rows, columns = (d % x.dim() if -x.dim() <= d < x.dim() else d for d in dim)
    if rows == columns:
        raise _C.ShapeError(f"linalg.matrix_norm: dims must differ: got {dim}")
    x = x if dtype is None else x.to(dtype)
    if not x.is_floating_point():
        raise _C.DTypeError(f"linalg.matrix_norm: needs a floating dtype: got {x.dtype}")
    if ord == "fro":
        return vector_norm(x, 2, dim, keepdim)
    if ord in (1, -1, math.inf, -math.inf):
        summed, kept = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = vector_norm(x, 1, summed, keepdim=True)
        extreme = (sums.amax if ord > 0 else sums.amin)(kept, keepdim=True)
        return extreme if keepdim else extreme.squeeze((rows, columns))
    if ord in ("nuc", 2, -2):
        raise NotImplementedError(f"linalg.matrix_norm: ord={ord!r}, which needs singular values")
    raise _C.Error(f"linalg.matrix_norm: unknown ord {ord!r}")


def norm(x: Tensor, ord=None, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """vector_norm; matrix_norm where ord is given for two dims, or for a matrix."""
    if ord is not None:
        if isinstance(dim, (tuple, list)) and len(dim) == 2:
            return matrix_norm(x, ord, dim, keepdim, dtype=dtype)
        if dim is None and (x.dim() == 2 or isinstance(ord, str)):
            return matrix_norm(x, ord, (-2, -1), keepdim, dtype=dtype)
        if isinstance(ord, str):
            raise _C.ShapeError(f"linalg.norm: ord {ord!r} needs two dims: got {dim}")
        if dim is None and x.dim() != 1:
            raise _C.ShapeError(f"linalg.norm: without dim, ord {ord} needs a vector or a matrix: got shape {list(x.shape)}")
    return vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product (torch.matmul)."""
    return _C.matmul(input, other)


def multi_dot(tensors) -> Tensor:
    """The product of several matrices, from left to right."""
    product = tensors[0]
    for tensor in tensors[1:]:
        product = product @ tensor
    return product


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Sum of products along `dim`."""
    return (x * y).sum(dim)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """A square matrix, or a batch of them, times itself: n factors; n must not be negative."""
    return _matrix_power(A, n)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of matrices."""
    return _C.diagonal(A, offset, dim1, dim2)
