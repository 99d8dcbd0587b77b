#!/usr/bin/env python3
"""Greedy generation with a key-value cache, one sequence, in PyTorch or JAX: the flags of `onestep bench generate`."""
from common import arguments, report

args = arguments(__doc__, ["torch", "jax"],
                 [("layers", 6), ("heads", 6), ("embd", 384), ("ctx", 256), ("vocab", 65), ("bias", 1), ("tokens", 128)])


def torch_call():
    import torch

    from gpt_torch import Gpt
    torch.set_num_threads(args.threads)
    model = Gpt(args.layers, args.heads, args.embd, args.ctx, args.vocab, bool(args.bias)).eval()
    shape = (1, args.heads, args.ctx, args.embd // args.heads)

    @torch.no_grad()
    def call():
        caches = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(args.layers)]
        token = torch.zeros(1, 1, dtype=torch.long)
        for at in range(args.tokens):
            token = model(token, caches, at)[:, -1].argmax(-1, keepdim=True)

    return call


def jax_call():
    import math

    import jax
    import jax.numpy as jnp

    from gpt_jax import linear, norm, parameters
    heads, features = args.heads, args.embd // args.heads

    def one(p, caches, token, at):
        x, new_cache = p["tokens"][token] + p["positions"][at], []
        for layer, (keys, values) in zip(p["blocks"], caches):
            q, k, v = (part.reshape(1, heads, features) for part in jnp.split(linear(norm(x, layer["norm1"]), layer["qkv"]), 3))
            keys, values = (jax.lax.dynamic_update_slice(c, new, (at, 0, 0)) for c, new in ((keys, k), (values, v)))
            scores = jnp.einsum("hd,thd->ht", q[0], keys) / math.sqrt(features)
            weights = jax.nn.softmax(jnp.where(jnp.arange(args.ctx) <= at, scores, -jnp.inf), -1)
            x = x + linear(jnp.einsum("ht,thd->hd", weights, values).reshape(-1), layer["out"])
            x = x + linear(jax.nn.gelu(linear(norm(x, layer["norm2"]), layer["up"]), approximate=False), layer["down"])
            new_cache.append((keys, values))
        return new_cache, jnp.argmax(p["tokens"] @ norm(x, p["norm"]))

    p = parameters(args.layers, args.embd, args.ctx, args.vocab, bool(args.bias))
    compiled = jax.jit(one, donate_argnums=(1,))

    def call():
        zeros = lambda: jnp.zeros((args.ctx, heads, features))
        caches, token = [(zeros(), zeros()) for _ in range(args.layers)], jnp.int32(0)
        for at in range(args.tokens):
            caches, token = compiled(p, caches, token, jnp.int32(at))
        token.block_until_ready()

    return call


report("gpt_infer", args, jax_call() if args.framework == "jax" else torch_call(), warmup=1, min_reps=3,
       tokens_per_s=lambda ms: 1e3 * args.tokens / ms)
