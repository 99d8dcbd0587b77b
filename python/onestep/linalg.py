"""Norms and products (torch.linalg), as far as they are there."""

from __future__ import annotations

from onestep import _C
from onestep._C import Tensor, cross  # noqa: F401


def vector_norm(x: Tensor, ord: float = 2, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """(sum |x|^ord)^(1 / ord) over `dim`, all of them by default."""
    return _C._vector_norm(x, ord, dim, keepdim, dtype=dtype)


def matrix_norm(x: Tensor, ord="fro", dim=(-2, -1), keepdim: bool = False, *, dtype=None) -> Tensor:
    """The Frobenius norm of matrices."""
    if ord != "fro":
        raise NotImplementedError(f"linalg.matrix_norm: ord={ord!r}; only 'fro' is there")
    return vector_norm(x, 2, dim, keepdim, dtype=dtype)


def norm(x: Tensor, ord=None, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """vector_norm, or the Frobenius norm."""
    if ord in (None, "fro"):
        return vector_norm(x, 2, dim, keepdim, dtype=dtype)
    if isinstance(ord, str) or (x.dim() == 2 and dim is None) or (isinstance(dim, (tuple, list)) and len(dim) == 2):
        raise NotImplementedError(f"linalg.norm: ord={ord!r} of matrices")
    return vector_norm(x, ord, dim, keepdim, dtype=dtype)


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


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of matrices."""
    return _C.diagonal(A, offset, dim1, dim2)
