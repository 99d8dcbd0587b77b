#!/usr/bin/env python3
"""Greedy generation with a key-value cache in PyTorch, JAX or llama.cpp: flags of `onestep bench generate`, from one token.

Weights in fewer bytes are llama.cpp's alone: F16 beside bf16, Q8_0 beside int8.
"""
from common import arguments, report

args = arguments(__doc__, ["torch", "jax", "llama"],
                 [("layers", 6), ("heads", 6), ("embd", 384), ("ctx", 256), ("vocab", 65), ("bias", 1), ("tokens", 128),
                  ("batch", 1)],
                 [("weights", "float32", ["float32", "bf16", "int8"])])
if args.weights != "float32" and args.framework != "llama":
    raise SystemExit(f"generate.py: {args.framework} is timed with weights in float32 alone")
if args.framework == "llama" and not args.bias:
    raise SystemExit("generate.py: llama.cpp's GPT-2 has biases (--bias 1)")


def torch_call():
    import torch

    from gpt_torch import Gpt
    torch.set_num_threads(args.threads)
    model = Gpt(args.layers, args.heads, args.embd, args.ctx, args.vocab, bool(args.bias)).eval()
    shape = (args.batch, args.heads, args.ctx, args.embd // args.heads)

    @torch.no_grad()
    def call():
        caches = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(args.layers)]
        token = torch.zeros(args.batch, 1, dtype=torch.long)
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
    many = (args.batch,) if args.batch > 1 else ()  # one sequence is faster without a dim of its own
    compiled = jax.jit(jax.vmap(one, (None, 0, 0, None)) if many else one, donate_argnums=(1,))

    def call():
        zeros = lambda: jnp.zeros((*many, args.ctx, heads, features))
        caches, token = [(zeros(), zeros()) for _ in range(args.layers)], jnp.zeros(many, jnp.int32)
        for at in range(args.tokens):
            caches, token = compiled(p, caches, token, jnp.int32(at))
        token.block_until_ready()

    return call


def llama_call():
    from gpt_llama import Decoder, random_model
    decoder = Decoder(random_model(args.layers, args.heads, args.embd, args.ctx, args.vocab, args.weights),
                      args.ctx, args.vocab, args.batch, args.threads)

    def call():
        decoder.clear()
        ids = 0
        for _ in range(args.tokens):
            ids = decoder(ids).argmax(-1)

    return call


call = {"torch": torch_call, "jax": jax_call, "llama": llama_call}[args.framework]()
report("gpt_infer", args, call, warmup=1, min_reps=3, tokens_per_s=lambda ms: 1e3 * args.batch * args.tokens / ms)
