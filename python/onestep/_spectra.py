"""Eigenvalues, singular values and what follows from them (torch.linalg): values and gradients as in _decompositions.py."""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Optional

from onestep import _C
from onestep._C import Tensor
from onestep._decompositions import check_square, inv, numpy_linalg, zero_where_none
from onestep._functions import finfo
from onestep.autograd.function import Function


def _symmetric(A: Tensor) -> Tensor:
    """With the lower triangle on both sides of the diagonal."""
    return A.tril() + A.tril(-1).mT


def _differences(x: Tensor) -> Tensor:
    """x_j - x_i, and infinity on the diagonal, which is divided by."""
    return (x.unsqueeze(-2) - x.unsqueeze(-1)).masked_fill(_C.eye(x.shape[-1], dtype=_C.bool), float("inf"))


class _Eigh(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, lower: bool) -> Any:
        w, V = numpy_linalg("eigh", A, UPLO="L" if lower else "U")
        ctx.save_for_backward(w, V)
        ctx.set_materialize_grads(False)
        return w, V

    @staticmethod
    def backward(ctx: Any, towards_w: Optional[Tensor], towards_V: Optional[Tensor]) -> Any:
        w, V = ctx.saved_tensors
        middle = _C.zeros_like(V) if towards_V is None else (V.mT @ towards_V) / _differences(w)
        return V @ (middle if towards_w is None else middle + _C.diag_embed(towards_w)) @ V.mT, None


class EighResult(NamedTuple):
    """What eigh gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eigh(A: Tensor, UPLO: str = "L") -> EighResult:
    """The eigenvalues of symmetric matrices, ascending, and their eigenvectors as columns; one triangle is read."""
    check_square("eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return EighResult(*_Eigh.apply(A, UPLO.upper() == "L"))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues alone."""
    return eigh(A, UPLO)[0]


class _SVD(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, full: bool) -> Any:
        U, S, Vh = numpy_linalg("svd", A, full_matrices=full)
        k = S.shape[-1]
        ctx.save_for_backward(U[..., :k], S, Vh[..., :k, :])
        ctx.set_materialize_grads(False)
        return U, S, Vh

    @staticmethod
    def backward(ctx: Any, towards_U: Optional[Tensor], towards_S: Optional[Tensor], towards_Vh: Optional[Tensor]) -> Any:
        """Seeger, Hetzel, Dai and Lawrence 2017."""
        U, S, Vh = ctx.saved_tensors
        k = S.shape[-1]
        towards_U = None if towards_U is None else towards_U[..., :k]  # the others are any that are orthogonal to these
        towards_Vh = None if towards_Vh is None else towards_Vh[..., :k, :]
        if towards_U is None and towards_Vh is None:
            return (U * zero_where_none([towards_S], [S])[0].unsqueeze(-2)) @ Vh, None
        gU, gS, gVh = zero_where_none((towards_U, towards_S, towards_Vh), (U, S, Vh))
        across = _differences(S * S)
        J, K = (U.mT @ gU) / across, (Vh @ gVh.mT) / across
        columns, rows = S.unsqueeze(-2), S.unsqueeze(-1)
        middle = (J + J.mT) * columns + rows * (K + K.mT) + _C.diag_embed(gS)
        outside_U = (gU - U @ (U.mT @ gU)) / columns
        outside_V = (gVh - (gVh @ Vh.mT) @ Vh) / rows
        return (U @ middle + outside_U) @ Vh + U @ outside_V, None


class SVDResult(NamedTuple):
    """What svd gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def svd(A: Tensor, full_matrices: bool = True, *, driver: Optional[str] = None) -> SVDResult:
    """A = U diag(S) Vh with S descending."""
    return SVDResult(*_SVD.apply(A, full_matrices))


def svdvals(A: Tensor, *, driver: Optional[str] = None) -> Tensor:
    """The singular values alone."""
    return svd(A, False)[1]


class _PseudoInverse(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, tolerance: Callable[[Tensor], Tensor], symmetric: bool) -> Tensor:
        U, S, Vh = numpy_linalg("svd", _symmetric(A) if symmetric else A, full_matrices=False)
        keep = S > tolerance(S)
        inverses = keep.to(S.dtype) / S.masked_fill(~keep, 1.0)
        P = (Vh.mT * inverses.unsqueeze(-2)) @ U.mT
        ctx.save_for_backward(A, P)
        return P

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Golub and Pereyra 1973."""
        A, P = ctx.saved_tensors
        K = grad.mT @ P
        KPh = K @ P.mT
        return -(P @ K).mT + KPh - (A @ P) @ KPh + (P.mT @ P) @ (grad.mT - K @ A), None, None


def pinv(A: Tensor, rcond: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse: singular values up to max(atol, rtol times the largest) count as 0."""
    rtol = rcond if rcond is not None else rtol

    def tolerance(S: Tensor) -> Tensor:
        return _tolerance(S, A, atol, rtol).unsqueeze(-1)

    return _PseudoInverse.apply(A, tolerance, hermitian)


def _tolerance(S: Tensor, A: Tensor, atol: Any, rtol: Any) -> Tensor:
    """max(atol, rtol S[0]); rtol is by default the larger dim in units of the precision, or 0 where atol is given."""
    if rtol is None:
        rtol = 0.0 if atol is not None and bool((_C.tensor(atol) > 0).any()) else max(A.shape[-2:]) * finfo(A.dtype).eps
    largest = S[..., 0] if S.shape[-1] > 0 else _C.zeros(S.shape[:-1], dtype=S.dtype)
    return _C.maximum(largest * rtol, _C.tensor(0.0 if atol is None else atol).to(S.dtype))


def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """How many singular values are above the tolerance of pinv."""
    S = svdvals((_symmetric(A) if hermitian else A).detach())
    return _rank(S, A, atol, rtol) if tol is None else _rank(S, A, tol, 0.0)


def _rank(S: Tensor, A: Tensor, atol: Any, rtol: Any) -> Tensor:
    return (S > _tolerance(S, A, atol, rtol).unsqueeze(-1)).sum(-1)


class LstsqResult(NamedTuple):
    """What lstsq gives."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: Optional[str] = None) -> LstsqResult:
    """The X with the least sum of squares of A X - B, and of these the least X."""
    vectors = B.dim() == A.dim() - 1
    B = B.unsqueeze(-1) if vectors else B
    X = pinv(A, rtol=rcond) @ B
    m, n = A.shape[-2:]
    none = X.new_empty(0)
    rest = (A @ X - B).square().sum(-2) if m > n and driver != "gelsy" else none
    S = none if driver == "gels" else svdvals(A.detach())
    rank = none.to(_C.int64) if driver == "gels" else _rank(S, A, None, rcond)
    return LstsqResult(X.squeeze(-1) if vectors else X, rest, rank, S if driver in ("gelsd", "gelss") else none)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """The norm of A times that of A^-1; by default of the largest singular value."""
    from onestep.linalg import norm

    if p is None or p in (2, -2):
        S = svdvals(A)
        return S[..., -1] / S[..., 0] if p == -2 else S[..., 0] / S[..., -1]
    return norm(A, p, (-2, -1)) * norm(inv(A), p, (-2, -1))


def vander(x: Tensor, *, N: Optional[int] = None) -> Tensor:
    """[..., n] -> [..., n, N]: the powers 0 to N - 1."""
    x = _C.atleast_1d(x if x.is_floating_point() else x.to(_C.int64))
    return x.unsqueeze(-1) ** _C.arange(x.shape[-1] if N is None else N).to(x.dtype)


def matrix_exp(A: Tensor) -> Tensor:
    """I + A + A^2 / 2! + ..., of A / 2^s, whose norm is at most 1, by terms to the 18th (Higham 2005), squared s times."""
    check_square("linalg.matrix_exp", A)
    if A.dtype not in (_C.float32, _C.float64):
        raise _C.DTypeError(f"linalg.matrix_exp: needs float32 or float64: got {A.dtype}")
    norm = float(A.detach().abs().sum(-1).max()) if A.numel() else 0.0
    squarings = max(0, math.ceil(math.log2(norm))) if 0 < norm < math.inf else 0
    identity = _C.eye(A.size(-1), dtype=A.dtype)
    scaled = A / 2.0**squarings
    power = identity.expand(A.shape)
    for k in range(18, 0, -1):
        power = identity + scaled @ power / k
    for _ in range(squarings):
        power = power @ power
    return power
