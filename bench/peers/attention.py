#!/usr/bin/env python3
"""Causal multi-head self-attention with its projections in PyTorch or JAX: the flags of `onestep bench attention`."""
from common import PRECISION, arguments, report

args = arguments(__doc__, ["torch_sdpa", "torch_naive", "jax"], [("B", 12), ("T", 64), ("C", 128), ("H", 4)],
                 [("mode", "fwdbwd", ["fwd", "fwdbwd"]), PRECISION])
if args.precision != "float32" and args.framework == "jax":
    raise SystemExit("attention.py: jax is timed in float32 alone")


def torch_call():
    import math

    import torch
    from torch import nn
    from torch.nn import functional as F
    torch.set_num_threads(args.threads)
    qkv, out = nn.Linear(args.C, 3 * args.C), nn.Linear(args.C, args.C)
    future = torch.triu(torch.ones(args.T, args.T, dtype=torch.bool), 1)
    x = torch.randn(args.B, args.T, args.C, requires_grad=args.mode == "fwdbwd")
    dy = torch.randn(args.B, args.T, args.C)

    def naive(q, k, v):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return torch.softmax(scores.masked_fill(future, -math.inf), -1) @ v

    def forward():
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision != "float32"):
            q, k, v = (part.view(args.B, args.T, args.H, -1).transpose(1, 2) for part in qkv(x).chunk(3, dim=-1))
            y = naive(q, k, v) if args.framework == "torch_naive" else F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return out(y.transpose(1, 2).reshape(args.B, args.T, args.C))

    if args.mode == "fwd":
        return torch.no_grad()(forward)
    leaves = [x, *qkv.parameters(), *out.parameters()]

    def both():
        for leaf in leaves:
            leaf.grad = None
        y = forward()
        y.backward(dy.to(y.dtype))

    return both


def jax_call():
    import jax
    import jax.numpy as jnp
    import numpy as np

    import gpt_jax
    random = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(random.standard_normal(shape, dtype=np.float32) * 0.05)
    p = {"qkv": {"w": draw(args.C, 3 * args.C), "b": draw(3 * args.C)}, "out": {"w": draw(args.C, args.C), "b": draw(args.C)}}
    x, dy = draw(args.B * args.T, args.C), draw(args.B * args.T, args.C)

    def forward(p, x):
        q, k, v = (gpt_jax.split_heads(part, args.B, args.H) for part in jnp.split(gpt_jax.linear(x, p["qkv"]), 3, -1))
        return gpt_jax.linear(gpt_jax.merge_heads(gpt_jax.attention(q, k, v)), p["out"])

    call = jax.jit(forward if args.mode == "fwd" else lambda p, x: jax.vjp(forward, p, x)[1](dy))
    return lambda: jax.block_until_ready(call(p, x))


report("attention", args, jax_call() if args.framework == "jax" else torch_call(), warmup=1)
