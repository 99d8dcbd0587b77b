"""amp.autocast: what is bfloat16 in it and what is not, as PyTorch 2.13 has it, and the gradients of its parameters."""

import pytest

import onestep as T
from onestep import nn
from onestep.nn import functional as F

X, W = T.arange(32.0).reshape(4, 8) / 32, T.arange(64.0).reshape(8, 8) / 64
HALF, TARGET = X.to(T.bfloat16), T.tensor([0, 1, 2, 3])

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
}


@pytest.mark.parametrize("name", [*BFLOAT16, *FLOAT32])
def test_dtypes(name):
    with T.autocast("cpu", dtype=T.bfloat16):
        assert (BFLOAT16 | FLOAT32)[name]().dtype == (T.bfloat16 if name in BFLOAT16 else T.float32)


def test_float64_stays():
    with T.autocast("cpu"):
        assert (X.double() @ W.double()).dtype == T.float64


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
