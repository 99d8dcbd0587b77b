"""amp.autocast: what is bfloat16 in it and what is not, as PyTorch 2.13 has it, and the gradients of its parameters."""

import pytest

import onestep as T
from onestep import nn
from onestep.nn import functional as F

X, W = T.arange(32.0).reshape(4, 8) / 32, T.arange(64.0).reshape(8, 8) / 64
HALF, TARGET = X.to(T.bfloat16), T.tensor([0, 1, 2, 3])

IMAGES, VOLUMES, MARKS = HALF.reshape(1, 1, 4, 8), HALF.reshape(1, 1, 2, 4, 4), T.tensor([1.0, -1, 1, -1]).to(T.bfloat16)

# torch 2.13: the dtype of each under torch.autocast("cpu", dtype=torch.bfloat16)
BFLOAT16 = {
    "linear": lambda: F.linear(X, W, W[0]),
    "linear of halves": lambda: F.linear(HALF, W, W[0]),
    "matmul": lambda: X @ W,
    "bmm": lambda: T.bmm(X[None], W[None]),
    "addmm": lambda: T.addmm(X, X, W),
    "baddbmm": lambda: T.baddbmm(X[None], X[None], W[None]),
    "matrix times vector": lambda: X @ X[0],
    "einsum": lambda: T.einsum("ij,jk->ik", X, W),
    "attention": lambda: F.scaled_dot_product_attention(X[None, None], X[None, None], X[None, None]),
    "conv2d": lambda: F.conv2d(X[None, None], W[None, None, :2, :2]),
    "layer_norm of halves": lambda: F.layer_norm(HALF, (8,), W[0], W[1]),
    "softmax of halves": lambda: F.softmax(HALF, -1),
    "gelu of halves": lambda: F.gelu(HALF),
    "LSTM": lambda: nn.LSTM(8, 8)(X)[0],
    "RNN": lambda: nn.RNN(8, 8)(X)[0],
    "GRU of halves": lambda: nn.GRU(8, 8, dtype=T.bfloat16)(HALF)[0],
    "prelu": lambda: nn.PReLU()(X),
    "vecdot": lambda: T.linalg.vecdot(X, X),
    "mv of halves": lambda: T.mv(HALF, HALF[0]),
    "sum of halves": lambda: HALF.sum(),
    "avg_pool2d of halves": lambda: F.avg_pool2d(IMAGES, 2),
    "MultiheadAttention": lambda: nn.MultiheadAttention(8, 2)(X, X, X)[0],
}
FLOAT32 = {
    "layer_norm": lambda: F.layer_norm(X, (8,), W[0], W[1]),
    "sum with float32": lambda: X + HALF,
    "cross_entropy": lambda: F.cross_entropy(HALF, TARGET),
    "nll_loss": lambda: F.nll_loss(F.log_softmax(HALF, -1), TARGET),
    "mse_loss": lambda: F.mse_loss(HALF, HALF),
    "binary_cross_entropy_with_logits": lambda: F.binary_cross_entropy_with_logits(HALF, HALF),
    "huber_loss": lambda: F.huber_loss(HALF, HALF),
    "kl_div": lambda: F.kl_div(HALF, HALF, reduction="sum"),
    "dot": lambda: T.dot(X[0], X[1]),
    "embedding": lambda: F.embedding(TARGET, W),
    "mv": lambda: T.mv(X, X[0]),
    "mv as a method": lambda: X.mv(X[0]),
    "addmv": lambda: T.addmv(X[:, 0], X, X[0]),
    "addr": lambda: T.addr(W, W[0], W[1]),
    "einsum of an outer product": lambda: T.einsum("i,j->ij", X[0], X[1]),
    "implicit einsum of an outer product": lambda: T.einsum("i,j", X[0], X[1]),
    "GRU": lambda: nn.GRU(8, 8)(X)[0],
    "GRUCell": lambda: nn.GRUCell(8, 8)(X),
    "LSTMCell": lambda: nn.LSTMCell(8, 8)(X)[0],
    "prod": lambda: HALF.prod(),
    "prod over a dim": lambda: T.prod(HALF, dim=1),
    "trace": lambda: T.trace(HALF),
    "cdist": lambda: T.cdist(HALF, HALF),
    "quantile": lambda: T.quantile(HALF, 0.5),
    "nanquantile": lambda: HALF.nanquantile(0.5),
    "grid_sample": lambda: F.grid_sample(IMAGES, HALF.reshape(1, 4, 4, 2), align_corners=False),
    "avg_pool3d": lambda: F.avg_pool3d(VOLUMES, 2),
    "AdaptiveAvgPool3d": lambda: nn.AdaptiveAvgPool3d(2)(VOLUMES),
    "adaptive_max_pool3d": lambda: F.adaptive_max_pool3d(VOLUMES, 2),
    "max_pool3d": lambda: F.max_pool3d(VOLUMES, 2),
    "lp_pool3d": lambda: F.lp_pool3d(VOLUMES, 2, 2),
    "max_unpool2d": lambda: F.max_unpool2d(*F.max_pool2d(IMAGES, 2, return_indices=True), 2),
    "local_response_norm": lambda: F.local_response_norm(IMAGES, 2),
    "cosine_embedding_loss": lambda: F.cosine_embedding_loss(HALF, HALF, MARKS),
    "margin_ranking_loss": lambda: F.margin_ranking_loss(HALF[:, 0], HALF[:, 1], MARKS),
    "hinge_embedding_loss": lambda: F.hinge_embedding_loss(HALF[:, 0], MARKS),
    "soft_margin_loss": lambda: F.soft_margin_loss(HALF[:, 0], MARKS),
    "triplet_margin_loss": lambda: F.triplet_margin_loss(HALF, HALF, HALF),
    "poisson_nll_loss": lambda: nn.PoissonNLLLoss()(HALF, HALF),
    "ctc_loss": lambda: F.ctc_loss(HALF[:, None], T.tensor([[1, 2]]), [4], [2]),
}


@pytest.mark.parametrize("name", [*BFLOAT16, *FLOAT32])
def test_dtypes(name):
    with T.autocast("cpu", dtype=T.bfloat16):
        assert (BFLOAT16 | FLOAT32)[name]().dtype == (T.bfloat16 if name in BFLOAT16 else T.float32)


def test_float64_stays():
    with T.autocast("cpu"):
        assert (X.double() @ W.double()).dtype == T.float64
        assert T.linalg.vecdot(X.double(), X.double()).dtype == F.prelu(X.double(), W[0, :1].double()).dtype == T.float64


def test_what_is_cast_has_gradients_and_float32_products_in_it_are_not_rounded():
    x, halves = X.clone().requires_grad_(), HALF.clone().requires_grad_()
    with T.autocast("cpu"):
        assert T.equal(T.mv(X, W[0]), (X.double() @ W[0].double()).float())
        assert T.equal(T.einsum("i,j->ij", X[0], X[1]), X[0, :, None] * X[1])
        T.linalg.vecdot(x, x).sum().backward()
        T.quantile(halves, 0.5).backward()
    assert x.grad.dtype == T.float32 and T.equal(x.grad, 2 * X)  # X in bfloat16 is X
    assert halves.grad.dtype == T.bfloat16 and halves.grad.sum() == 1


def test_scopes():
    assert not T.is_autocast_enabled("cpu")
    with T.autocast("cpu"):
        assert T.is_autocast_enabled("cpu") and not T.is_autocast_enabled()
        with T.autocast("cpu", enabled=False):
            assert (X @ W).dtype == T.float32
        with T.autocast("cuda"):
            assert (X @ W).dtype == T.bfloat16
        assert (X @ W).dtype == T.bfloat16
    assert (X @ W).dtype == T.float32
    with pytest.raises(RuntimeError), T.autocast("cpu"):
        raise RuntimeError
    assert not T.is_autocast_enabled("cpu")

    @T.autocast("cpu", dtype=T.bfloat16)
    def product():
        return X @ W

    assert product().dtype == T.bfloat16 and product.__name__ == "product"
    with pytest.raises(NotImplementedError, match="float16"):
        T.autocast("cpu", dtype=T.float16)


def test_parameters_are_rounded_anew_when_they_change():
    layer = nn.Linear(8, 8, bias=False)
    with T.autocast("cpu"):
        before = layer(X)
        with T.no_grad():
            layer.weight.mul_(2)
        assert T.equal(layer(X), before * 2)


def test_gradients_are_float32_and_close_to_those_of_float32():
    T.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    x, grads = T.randn(16, 8, requires_grad=True), []
    for enabled in (False, True):
        model.zero_grad()
        x.grad = None
        with T.autocast("cpu", enabled=enabled):
            loss = F.cross_entropy(model(x), T.arange(16) % 4)
        assert loss.dtype == T.float32
        loss.backward()
        grads.append([p.grad.clone() for p in (*model.parameters(), x)])
    for exact, rounded in zip(*grads):
        assert rounded.dtype == T.float32
        assert (exact - rounded).norm() <= 0.02 * exact.norm()
        assert not T.equal(exact, rounded)


def test_a_second_derivative_goes_through():
    x, w = T.randn(4, 8, requires_grad=True), T.randn(8, 8, requires_grad=True)
    with T.autocast("cpu"):
        y = F.linear(x, w).float().tanh().sum()
    (dx,) = T.autograd.grad(y, x, create_graph=True)
    (dw,) = T.autograd.grad(dx.square().sum(), w)
    assert dw.dtype == T.float32 and dw.abs().sum() > 0


def test_the_order_of_sums_is_set_by_name():
    x, w = T.randn(4, 96, generator=T.Generator().manual_seed(1)), T.randn(96, 96, generator=T.Generator().manual_seed(2))
    results = []
    for order in ("avx512", "amx", "avx512"):
        T.amp.set_bf16_order(order)
        assert T.amp.get_bf16_order() == order
        weight = w.clone().requires_grad_()
        with T.autocast("cpu", dtype=T.bfloat16):
            y = F.linear(x, weight).float()
        (y * y).sum().backward()
        results.append(weight.grad)
    assert T.equal(results[0], results[2])
    assert not T.equal(results[0], results[1])
    assert T.allclose(results[0], results[1], rtol=0.02, atol=0.5)
    T.amp.set_bf16_order(T.amp.fastest_bf16_order())
    T.amp.set_bf16_order("avx512")
    with pytest.raises(ValueError, match="must be avx512 or amx: got tiles"):
        T.amp.set_bf16_order("tiles")
