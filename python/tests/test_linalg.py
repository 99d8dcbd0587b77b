"""Decompositions: what defines them, and gradients beside differences. PyTorch's own samples: programs/op_db.py."""

import math

import onestep as torch
import pytest

pytest.importorskip("numpy")
linalg = torch.linalg


def matrices(*shape, seed=0):
    torch.manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64)


def positive(n, *batch):
    A = matrices(*batch, n, n)
    return A @ A.mT + torch.eye(n, dtype=torch.float64)


def near(a, b, tolerance=1e-10):
    assert a.shape == b.shape and torch.allclose(a, b, rtol=tolerance, atol=tolerance)


def test_inverses_and_equations():
    A, B, eye = matrices(2, 4, 4), matrices(4, 3, seed=1), torch.eye(4, dtype=torch.float64)
    near(linalg.inv(A) @ A, eye.expand(2, 4, 4))
    near(A @ linalg.solve(A, B), B.expand(2, 4, 3))
    near(linalg.solve(A, B.mT, left=False) @ A, B.mT.expand(2, 3, 4))
    near(A[0] @ linalg.solve(A[0], B[:, 0]), B[:, 0])
    near(A[0].triu() @ linalg.solve_triangular(A[0], B, upper=True), B)
    lower = matrices(4, 4, 4).tril()
    near(lower @ linalg.solve_triangular(lower, eye, upper=False), eye.expand(4, 4, 4))  # not a batch of vectors
    near(A[0].inverse(), linalg.inv_ex(A[0]).inverse)
    near(linalg.matrix_power(A[0], -2) @ A[0] @ A[0], eye)
    near(torch.tensordot(matrices(2, 3, 6), linalg.tensorsolve(matrices(2, 3, 6), matrices(2, 3)), 1), matrices(2, 3))


def test_determinants():
    A = torch.tensor([[1.0, 2], [3, 4]])
    assert A.det().item() == pytest.approx(-2) and linalg.slogdet(A).sign.item() == -1 and A.logdet().isnan()
    assert torch.logdet(A.flip(0)).exp().item() == pytest.approx(2)
    singular = torch.tensor([[1.0, 2], [2, 4]], requires_grad=True)
    singular.det().backward()
    near(singular.grad, torch.tensor([[4.0, -2], [-2, 1]]), 1e-5)  # the cofactors


def test_factors():
    A = positive(4, 2)
    L = linalg.cholesky(A)
    near(L @ L.mT, A)
    assert (L.triu(1) == 0).all() and torch.equal(linalg.cholesky(A, upper=True), L.mT)
    near(A @ torch.cholesky_solve(A, L), A)
    near(torch.cholesky_inverse(L[0]), linalg.inv(A[0]))
    for shape in ((5, 3), (3, 5), (2, 4, 4)):
        A = matrices(*shape)
        Q, R = linalg.qr(A)
        near(Q @ R, A)
        near(Q.mT @ Q, torch.eye(min(shape[-2:]), dtype=A.dtype).expand(*shape[:-2], min(shape[-2:]), min(shape[-2:])))
        assert (R.tril(-1) == 0).all() and linalg.qr(A, "complete").Q.shape[-1] == shape[-2]


def test_eigenvalues_and_singular_values():
    A = positive(4, 2)
    w, V = linalg.eigh(A)
    near(V @ torch.diag_embed(w) @ V.mT, A)
    near(linalg.eigvalsh(A), w)
    for shape in ((5, 3), (3, 5), (2, 4, 4)):
        A = matrices(*shape)
        U, S, Vh = linalg.svd(A, full_matrices=False)
        near(U @ torch.diag_embed(S) @ Vh, A)
        assert (S.diff() <= 0).all() and linalg.svd(A).U.shape[-1] == shape[-2]
        near(A.svd().V, Vh.mT)
        near(A @ linalg.pinv(A) @ A, A)
        near(linalg.matrix_norm(A, "nuc"), S.sum(-1))
        near(torch.norm(A, "nuc", dim=(-2, -1)), S.sum(-1))
        near(linalg.matrix_norm(A, 2), S[..., 0])
        near(linalg.cond(A), S[..., 0] / S[..., -1])
    rank_one = matrices(4, 1) @ matrices(1, 3)
    assert linalg.matrix_rank(rank_one).item() == 1
    solution = linalg.lstsq(matrices(6, 3), matrices(6, 2, seed=1))
    near(matrices(6, 3).mT @ (matrices(6, 3) @ solution.solution - matrices(6, 2, seed=1)), torch.zeros(3, 2, dtype=torch.float64))
    assert solution.rank.item() == 3


def test_exponentials_of_matrices():
    turn = torch.tensor([[0.0, 3.0], [-3.0, 0.0]], dtype=torch.float64)
    c, s = math.cos(3), math.sin(3)
    near(torch.matrix_exp(turn), torch.tensor([[c, s], [-s, c]], dtype=torch.float64))
    A = 2 * matrices(2, 4, 4)
    near(linalg.matrix_exp(A) @ linalg.matrix_exp(-A), torch.eye(4, dtype=A.dtype).expand(2, 4, 4))
    w, V = linalg.eigh(positive(4, 2))
    near(linalg.matrix_exp(positive(4, 2)), V @ torch.diag_embed(w.exp()) @ V.mT)
    assert linalg.matrix_exp(torch.zeros(0, 2, 2)).shape == (0, 2, 2)


GRADIENTS = {
    "inv": linalg.inv,
    "solve": lambda A: linalg.solve(A, A.mT[..., :2]),
    "det": linalg.det,
    "slogdet": lambda A: linalg.slogdet(A)[1],
    "solve_triangular": lambda A: linalg.solve_triangular(A, A, upper=False, unitriangular=True),
    "cholesky": lambda A: linalg.cholesky(A @ A.mT + torch.eye(3, dtype=A.dtype)),
    "qr": lambda A: linalg.qr(A),
    "qr of wide": lambda A: linalg.qr(A[:2]),
    "eigh": lambda A: (linalg.eigh(A + A.mT)[0], linalg.eigh(A + A.mT)[1] ** 2),
    "svd": lambda A: (linalg.svd(A[:2], False)[0] ** 2, linalg.svd(A[:, :2], False)[2] ** 2, linalg.svdvals(A)),
    "matrix_exp": lambda A: linalg.matrix_exp(2 * A),
    "pinv": lambda A: linalg.pinv(A[:, :2]),
    "lstsq": lambda A: linalg.lstsq(A[:, :2], A).solution,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_differences(name):
    assert torch.autograd.gradcheck(GRADIENTS[name], [matrices(3, 3, seed=2).requires_grad_()])


@pytest.mark.parametrize("name", ["inv", "solve", "slogdet", "cholesky"])
def test_gradients_have_gradients(name):
    assert torch.autograd.gradgradcheck(GRADIENTS[name], [matrices(3, 3, seed=2).requires_grad_()])


def test_what_has_no_result_is_refused():
    with pytest.raises(linalg.LinAlgError, match="linalg.inv: Singular matrix"):
        linalg.inv(torch.zeros(2, 2))
    with pytest.raises(linalg.LinAlgError, match="linalg.svd: .*non-finite"):
        linalg.matrix_norm(torch.tensor([[float("nan")]]), 2)
    with pytest.raises(RuntimeError, match="linalg.cholesky"):
        linalg.cholesky(-torch.eye(2))
    with pytest.raises(RuntimeError, match="must be batches of square matrices, but they are 2 by 3"):
        linalg.det(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        linalg.svd(torch.ones(3))
    with pytest.raises(RuntimeError, match="float32 or float64: got torch.int64"):
        linalg.inv(torch.eye(2, dtype=torch.int64))


def test_out_takes_results():
    A, out = positive(3), torch.empty(0, dtype=torch.float64)
    assert linalg.inv(A, out=out) is out and torch.equal(out, linalg.inv(A)) and linalg.inv(A, out=None).shape == (3, 3)
    w, V = torch.empty(3, dtype=torch.float64), torch.empty(3, 3, dtype=torch.float64)
    linalg.eigh(A, out=(w, V))
    near(V @ torch.diag_embed(w) @ V.mT, A)
