"""Norms, products, decompositions and equations (torch.linalg)."""

from __future__ import annotations

import math
from typing import NamedTuple

from onestep import _C
from onestep._C import Tensor, cross  # noqa: F401
from onestep._autocast import casts
from onestep._composed import matrix_power as _matrix_power
from onestep._out import with_out
from onestep._decompositions import (  # noqa: F401
    LinAlgError, cholesky, det, inv, qr, slogdet, solve, solve_triangular,
)  # fmt: skip
from onestep._spectra import cond, eigh, eigvalsh, lstsq, matrix_exp, matrix_rank, pinv, svd, svdvals, vander  # noqa: F401


class InverseResult(NamedTuple):
    """What inv_ex gives."""

    inverse: Tensor
    info: Tensor


class CholeskyResult(NamedTuple):
    """What cholesky_ex gives."""

    L: Tensor
    info: Tensor


class SolveResult(NamedTuple):
    """What solve_ex gives."""

    result: Tensor
    info: Tensor


def vector_norm(x: Tensor, ord: float = 2, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """(sum |x|^ord)^(1 / ord) over `dim`, all of them by default."""
    return _C._vector_norm(x, ord, dim, keepdim, dtype=dtype)


def matrix_norm(x: Tensor, ord="fro", dim=(-2, -1), keepdim: bool = False, *, dtype=None) -> Tensor:
    """Of the matrices in two dims: "fro", the root of the sum of squares; 1 and -1, the largest and least sum of |x| of a
    column; inf and -inf, of a row; "nuc", 2 and -2, the sum of the singular values, the largest and the least."""
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
        values = svdvals(x.movedim((rows, columns), (-2, -1)))
        found = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
        return found.unsqueeze(min(rows, columns)).unsqueeze(max(rows, columns)) if keepdim else found
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


@casts
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Sum of products along `dim`."""
    return (x * y).sum(dim)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """A square matrix, or a batch of them, times itself: n factors; of its inverse where n is negative."""
    return _matrix_power(A, n) if n >= 0 else _matrix_power(inv(A), -n)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> InverseResult:
    """inv, and 0; what has no inverse raises in any case."""
    return InverseResult(inv(A), _C.zeros(A.shape[:-2], dtype=_C.int32))


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyResult:
    """cholesky, and 0; what has no factor raises in any case."""
    return CholeskyResult(cholesky(A, upper=upper), _C.zeros(A.shape[:-2], dtype=_C.int32))


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveResult:
    """solve, and 0; what has no solution raises in any case."""
    return SolveResult(solve(A, B, left=left), _C.zeros(A.shape[:-2], dtype=_C.int32))


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a matrix whose rows are the first `ind` dims."""
    rows, columns = A.shape[:ind], A.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise RuntimeError(f"linalg.tensorinv: the products of {list(rows)} and of {list(columns)} must be equal")
    return inv(A.reshape(math.prod(rows), -1)).reshape(*columns, *rows)


def tensorsolve(A: Tensor, B: Tensor, dims=None) -> Tensor:
    """X of tensordot(A, X, X.dim()) = B."""
    A = A if dims is None else A.movedim(tuple(dims), tuple(range(A.dim() - len(dims), A.dim())))
    shape = A.shape[B.dim() :]
    if B.numel() != math.prod(shape):
        raise RuntimeError(f"linalg.tensorsolve: {B.numel()} equations for {math.prod(shape)} unknowns")
    return solve(A.reshape(-1, B.numel()), B.flatten()).reshape(shape)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of matrices."""
    return _C.diagonal(A, offset, dim1, dim2)


for _name in """cholesky cholesky_ex cond det diagonal eigh eigvalsh inv inv_ex matmul matrix_exp matrix_norm matrix_power matrix_rank multi_dot
    norm pinv qr slogdet solve solve_ex solve_triangular svd svdvals tensorinv tensorsolve vecdot vector_norm""".split():
    globals()[_name] = with_out(globals()[_name])
del _name
