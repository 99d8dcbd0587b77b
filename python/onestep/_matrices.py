"""Functions of matrices under the names of torch, and as methods: those of torch.linalg."""

from __future__ import annotations

from typing import NamedTuple

import onestep
from onestep._C import Tensor
from onestep._composed import _op

__all__ = [
    "cholesky", "cholesky_inverse", "cholesky_solve", "det", "inverse", "logdet", "matrix_exp", "pinverse", "qr", "slogdet", "svd",
]  # fmt: skip


class SVD(NamedTuple):
    """What svd gives: V is not transposed."""

    U: Tensor
    S: Tensor
    V: Tensor


@_op
def inverse(input: Tensor) -> Tensor:
    """linalg.inv."""
    return onestep.linalg.inv(input)


@_op
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """linalg.pinv."""
    return onestep.linalg.pinv(input, rcond)


@_op
def det(input: Tensor) -> Tensor:
    """linalg.det."""
    return onestep.linalg.det(input)


@_op
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN where this is negative."""
    sign, logarithm = onestep.linalg.slogdet(input)
    return logarithm.masked_fill(sign < 0, float("nan"))


@_op
def matrix_exp(input: Tensor) -> Tensor:
    """linalg.matrix_exp."""
    return onestep.linalg.matrix_exp(input)


@_op
def slogdet(input: Tensor):
    """linalg.slogdet."""
    return onestep.linalg.slogdet(input)


@_op
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """linalg.cholesky."""
    return onestep.linalg.cholesky(input, upper=upper)


def _from_factor(L: Tensor, upper: bool) -> Tensor:
    """L L^T; one triangle of L is read, and gradients go to both, as in PyTorch."""
    L = L.mT if upper else L
    L = L + (L.detach().tril() - L.detach())
    return L @ L.mT


@_op
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X of A X = B from the Cholesky factor of A."""
    return onestep.linalg.solve(_from_factor(L, upper), B)


@_op
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """A^-1 from the Cholesky factor of A."""
    return onestep.linalg.inv(_from_factor(L, upper))


@_op
def qr(input: Tensor, some: bool = True):
    """linalg.qr, "complete" unless `some`."""
    return onestep.linalg.qr(input, "reduced" if some else "complete")


@_op
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVD:
    """linalg.svd with V instead of its transpose, of reduced matrices where `some`."""
    U, S, Vh = onestep.linalg.svd(input, not some)
    return SVD(U, S, Vh.mT) if compute_uv else SVD(U.new_zeros(U.shape), S, Vh.new_zeros(Vh.mT.shape))

