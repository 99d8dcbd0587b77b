"""The same GPT in JAX. Batch and tokens are one dimension in every product: XLA's gradients are faster so."""
import math

import jax
import jax.numpy as jnp
import numpy as np


def parameters(layers, width, context, vocab, bias, seed=0):
    random = np.random.default_rng(seed)

    def linear(n_in, n_out):
        weight = jnp.asarray(random.standard_normal((n_in, n_out), dtype=np.float32) * 0.02)
        return {"w": weight, "b": jnp.zeros(n_out)} if bias else {"w": weight}

    def norm():
        return {"w": jnp.ones(width), "b": jnp.zeros(width)} if bias else {"w": jnp.ones(width)}

    return {"tokens": linear(vocab, width)["w"], "positions": linear(context, width)["w"], "norm": norm(),
            "blocks": [{"norm1": norm(), "qkv": linear(width, 3 * width), "out": linear(width, width), "norm2": norm(),
                        "up": linear(width, 4 * width), "down": linear(4 * width, width)} for _ in range(layers)]}


def linear(x, p):
    return x @ p["w"] + p.get("b", 0)


def norm(x, p):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * p["w"] + p.get("b", 0)


def attention(q, k, v):
    """[B, H, T, d], causal."""
    scores = jnp.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(q.shape[-1])
    attended = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(jnp.where(attended, scores, -jnp.inf), -1), v)


def split_heads(x, batch, heads):
    return x.reshape(batch, -1, heads, x.shape[-1] // heads).transpose(0, 2, 1, 3)


def merge_heads(x):
    return x.transpose(0, 2, 1, 3).reshape(-1, x.shape[1] * x.shape[3])


def block(x, p, batch, heads):
    q, k, v = (split_heads(part, batch, heads) for part in jnp.split(linear(norm(x, p["norm1"]), p["qkv"]), 3, -1))
    x = x + linear(merge_heads(attention(q, k, v)), p["out"])
    return x + linear(jax.nn.gelu(linear(norm(x, p["norm2"]), p["up"]), approximate=False), p["down"])


def logits(p, ids, heads):
    """ids [B, T] -> [B T, V]"""
    x = (p["tokens"][ids] + p["positions"][:ids.shape[1]]).reshape(ids.size, -1)
    for one in p["blocks"]:
        x = block(x, one, ids.shape[0], heads)
    return norm(x, p["norm"]) @ p["tokens"].T
