"""Inverses, determinants, triangular factors and equations (torch.linalg): NumPy's LAPACK computes the values, formulas in ops the
gradients, so that these can be differentiated again."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple, Optional, Sequence

from onestep import _C
from onestep._C import Tensor
from onestep._functions import broadcast_shapes
from onestep.autograd.function import Function


class LinAlgError(RuntimeError):
    """A matrix that has no such result."""


def numpy_linalg(name: str, *matrices: Tensor, **options: Any) -> Any:
    """A function of numpy.linalg of matrices [..., m, n] in float32 or float64."""
    for x in matrices:
        if x.dim() < 2:
            raise RuntimeError(f"linalg.{name}: The input tensor A must have at least 2 dimensions.")
        if x.dtype not in (_C.float32, _C.float64):
            raise RuntimeError(f"linalg.{name}: Expected a floating point tensor of float32 or float64: got {x.dtype}")
        if name in ("svd", "eigh") and not bool(x.isfinite().all()):  # where LAPACK may never end
            raise LinAlgError(f"linalg.{name}: The algorithm failed to converge because the input matrix contained non-finite values.")
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        raise ImportError(f"linalg.{name} needs NumPy (pip install numpy)") from None
    try:
        found = getattr(numpy.linalg, name)(*(x.detach().numpy() for x in matrices), **options)
    except numpy.linalg.LinAlgError as error:
        raise LinAlgError(f"linalg.{name}: {error}") from None
    as_tensor = lambda y: _C.tensor(numpy.asarray(y)).to(matrices[0].dtype)  # noqa: E731 - torch.tensor copies
    return tuple(map(as_tensor, found)) if isinstance(found, tuple) else as_tensor(found)


def check_square(name: str, A: Tensor) -> None:
    if A.dim() >= 2 and A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"linalg.{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices")


def zero_where_none(grads: Sequence[Optional[Tensor]], values: Sequence[Tensor]) -> list[Tensor]:
    return [_C.zeros_like(y) if g is None else g for g, y in zip(grads, values)]


# ---- inverses and equations


class _Inverse(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        Y = numpy_linalg("inv", A)
        ctx.save_for_backward(Y)
        return Y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (Y,) = ctx.saved_tensors
        return -(Y.mT @ grad @ Y.mT)


def inv(A: Tensor) -> Tensor:
    """A^-1 of [..., n, n]."""
    check_square("inv", A)
    return _Inverse.apply(A)


class _Solve(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, B: Tensor) -> Tensor:
        X = numpy_linalg("solve", A, B)
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        A, X = ctx.saved_tensors
        towards_B = solve(A.mT, grad)
        return -(towards_B @ X.mT), towards_B


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X of A X = B, or of X A = B: [..., n, n], [..., n, k] -> [..., n, k]; B may be vectors [..., n]."""
    check_square("solve", A)
    vectors = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.shape == A.shape[:-1])
    if vectors:
        if not left:
            raise RuntimeError("linalg.solve: left=False needs matrices B")
        return solve(A, B.unsqueeze(-1)).squeeze(-1)
    if not left:
        return solve(A.mT, B.mT).mT
    if B.dim() < 2 or B.shape[-2] != A.shape[-1]:
        raise RuntimeError(f"linalg.solve: Incompatible shapes of A and B for the equation AX = B ({list(A.shape)} and {list(B.shape)})")
    batch = broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return _Solve.apply(A.expand(*batch, *A.shape[-2:]), B.expand(*batch, *B.shape[-2:]))


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """solve with the upper or lower triangle of A alone, and with 1 on its diagonal if `unitriangular`."""
    check_square("solve_triangular", A)
    triangle = A.triu(1 if unitriangular else 0) if upper else A.tril(-1 if unitriangular else 0)
    if unitriangular:
        triangle = triangle + _C.eye(A.shape[-1], dtype=A.dtype)
    batch = broadcast_shapes(A.shape[:-2], B.shape[:-2])  # solve might take B for vectors
    return solve(triangle, B.expand(*batch, *B.shape[-2:]), left=left)


class _Det(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        ctx.save_for_backward(A)
        return numpy_linalg("det", A)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """By the cofactors, U diag(products of the other singular values) V^T, which singular matrices have, too."""
        (A,) = ctx.saved_tensors
        from onestep._spectra import svd

        U, S, Vh = svd(A)
        n = S.shape[-1]
        others = S.unsqueeze(-2).expand(*S.shape, n).masked_fill(_C.eye(n, dtype=_C.bool), 1.0).prod(-1)
        sign = numpy_linalg("det", U) * numpy_linalg("det", Vh)
        return (grad * sign)[..., None, None] * ((U * others.unsqueeze(-2)) @ Vh)


def det(A: Tensor) -> Tensor:
    """The determinants of [..., n, n]: [...]"""
    check_square("det", A)
    return _Det.apply(A)


class _SignAndLog(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Any:
        ctx.save_for_backward(A)
        sign, logarithm = numpy_linalg("slogdet", A)
        ctx.mark_non_differentiable(sign)
        return sign, logarithm

    @staticmethod
    def backward(ctx: Any, _: Any, grad: Tensor) -> Tensor:
        (A,) = ctx.saved_tensors
        return grad[..., None, None] * inv(A).mT


class SlogdetResult(NamedTuple):
    """What slogdet gives."""

    sign: Tensor
    logabsdet: Tensor


def slogdet(A: Tensor) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its absolute value."""
    check_square("slogdet", A)
    return SlogdetResult(*_SignAndLog.apply(A))


# ---- Cholesky: A = L L^T


class _Cholesky(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        L = numpy_linalg("cholesky", A)
        ctx.save_for_backward(L)
        return L

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """L^-T (the lower triangle of L^T grad, its diagonal halved) L^-1, made symmetric (Murray 2016)."""
        (L,) = ctx.saved_tensors
        middle = (L.mT @ grad).tril()
        middle = middle - _C.diag_embed(middle.diagonal(dim1=-2, dim2=-1)) / 2
        outer = solve_triangular(L, solve_triangular(L.mT, middle, upper=True), upper=False, left=False)
        return (outer + outer.mT) / 2


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with a positive diagonal, or its transpose."""
    check_square("cholesky", A)
    L = _Cholesky.apply(A)
    return L.mT if upper else L


# ---- QR: A = Q R


class _QR(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, mode: str) -> Any:
        Q, R = numpy_linalg("qr", A, mode=mode)
        ctx.save_for_backward(A, Q, R)
        ctx.mode = mode
        ctx.set_materialize_grads(False)
        return Q, R

    @staticmethod
    def backward(ctx: Any, towards_Q: Optional[Tensor], towards_R: Optional[Tensor]) -> Any:
        A, Q, R = ctx.saved_tensors
        m, n = A.shape[-2:]
        if ctx.mode == "complete" and m > n:
            raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
        gQ, gR = zero_where_none((towards_Q, towards_R), (Q, R))
        if m >= n:
            return _qr_gradient(Q, R, gQ, gR), None
        towards_left = _qr_gradient(Q, R[..., :m], gQ + A[..., m:] @ gR[..., m:].mT, gR[..., :m])
        return _C.cat([towards_left, Q @ gR[..., m:]], -1), None


def _qr_gradient(Q: Tensor, R: Tensor, gQ: Tensor, gR: Tensor) -> Tensor:
    """(gQ + Q M) R^-T with the symmetric M of the lower triangle of R gR^T - gQ^T Q (Walter and Lehmann 2018)."""
    M = R @ gR.mT - gQ.mT @ Q
    M = M.tril() + M.tril(-1).mT
    return solve_triangular(R.mT, gQ + Q @ M, upper=False, left=False)


class QRResult(NamedTuple):
    """What qr gives."""

    Q: Tensor
    R: Tensor


def qr(A: Tensor, mode: str = "reduced") -> QRResult:
    """Q with orthonormal columns and the upper triangular R; of `mode` "r" R alone, of "complete" a square Q."""
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    Q, R = _QR.apply(A, "complete" if mode == "complete" else "reduced")
    return QRResult(_C.empty(0, dtype=A.dtype) if mode == "r" else Q, R)
