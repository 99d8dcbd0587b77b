"""The chapter's layers: the book's numbers from its seeds, and the same through other ways."""

import json
from pathlib import Path

import pytest

import onestep
from onestep import attention, nn

GOLDENS = Path(__file__).resolve().parents[2] / "tests" / "goldens"
RESULTS = json.loads((GOLDENS / "reference.json").read_text())["seed_results_full_precision"]
ENTRIES = json.loads((GOLDENS / "seeds.json").read_text())["entries"]


def inputs():
    return onestep.tensor(next(e for e in ENTRIES if e["id"] == "inputs")["values"]).reshape(6, 3)


def check(got, name):
    want = onestep.tensor(RESULTS[name]["values"]).reshape(RESULTS[name]["shape"])
    assert got.shape == want.shape
    assert onestep.allclose(got, want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("seed, make, name, batched", [
    (0, lambda: attention.SimplifiedSelfAttention(3), "simple_ctx_all", False),
    (123, lambda: attention.SelfAttention_v1(3, 2), "self_attention_v1", False),
    (789, lambda: attention.SelfAttention_v2(3, 2), "self_attention_v2", False),
    (123, lambda: attention.CausalAttention(3, 2, 6, 0.0), "causal_attention", True),
    (123, lambda: attention.MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=2), "mha_wrapper", True),
    (123, lambda: attention.MultiHeadAttention(3, 2, 6, 0.0, num_heads=2), "mha", True),
])
def test_the_books_numbers(seed, make, name, batched):
    onestep.manual_seed(seed)
    layer = make()
    x = onestep.stack([inputs(), inputs()]) if batched else inputs()
    check(layer(x), name)
    context, weights = layer(x, return_weights=True)
    assert onestep.equal(context, layer(x))
    assert onestep.allclose(weights.sum(-1), onestep.ones(weights.shape[:-1]))


def test_a_token_sees_no_later_one():
    onestep.manual_seed(1)
    layer = attention.MultiHeadAttention(3, 4, 8, 0.5, 2, qkv_bias=True).eval()
    x = onestep.randn(2, 6, 3)
    y = x.clone()
    y[:, 5] = 9
    assert onestep.equal(layer(x)[:, :5], layer(y)[:, :5]) and not onestep.equal(layer(x)[:, 5], layer(y)[:, 5])


def test_one_head_without_its_projection_is_causal_attention():
    onestep.manual_seed(2)
    many = attention.MultiHeadAttention(4, 3, 6, 0.3, 1)
    one = attention.CausalAttention(4, 3, 6, 0.3)
    one.load_state_dict({k: v for k, v in many.state_dict().items() if "out_proj" not in k})
    many.out_proj = nn.Identity()
    x = onestep.randn(2, 6, 4)
    results = []
    for layer in (many, one):
        onestep.manual_seed(3)
        results.append(layer(x))
    assert onestep.equal(*results)


def test_what_does_not_fit_is_refused():
    with pytest.raises(onestep.ShapeError, match="num_heads must divide d_out"):
        attention.MultiHeadAttention(3, 4, 6, 0.0, num_heads=3)
    with pytest.raises(onestep.ShapeError, match="7 tokens"):
        attention.CausalAttention(3, 4, 6, 0.0)(onestep.ones(1, 7, 3))
    with pytest.raises(onestep.ShapeError, match="SelfAttention_v1: x must be"):
        attention.SelfAttention_v1(3, 4)(onestep.ones(2, 4))
