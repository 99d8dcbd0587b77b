"""Functions of matrices under the names of torch, and as methods: those of torch.linalg."""

from __future__ import annotations

from typing import NamedTuple

from onestep import linalg
from onestep._C import Tensor
from onestep._composed import _op, __all__ as _composed

_before = len(_composed)


class SVD(NamedTuple):
    """What svd gives: V is not transposed."""

    U: Tensor
    S: Tensor
    V: Tensor


@_op
def inverse(input: Tensor) -> Tensor:
    """linalg.inv."""
    return linalg.inv(input)


@_op
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """linalg.pinv."""
    return linalg.pinv(input, rcond)


@_op
def det(input: Tensor) -> Tensor:
    """linalg.det."""
    return linalg.det(input)


@_op
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN where this is negative."""
    return linalg.logdet(input)


@_op
def slogdet(input: Tensor):
    """linalg.slogdet."""
    return linalg.slogdet(input)


@_op
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """linalg.cholesky."""
    return linalg.cholesky(input, upper=upper)


@_op
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X of A X = B from the Cholesky factor of A."""
    return linalg.cholesky_solve(B, L, upper)


@_op
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """A^-1 from the Cholesky factor of A."""
    return linalg.cholesky_inverse(L, upper)


@_op
def qr(input: Tensor, some: bool = True):
    """linalg.qr, "complete" unless `some`."""
    return linalg.qr(input, "reduced" if some else "complete")


@_op
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVD:
    """linalg.svd with V instead of its transpose, of reduced matrices where `some`."""
    U, S, Vh = linalg.svd(input, not some)
    return SVD(U, S, Vh.mT) if compute_uv else SVD(U.new_zeros(U.shape), S, Vh.new_zeros(Vh.mT.shape))


__all__ = _composed[_before:]
