#!/usr/bin/env python3
"""One training step of a GPT (forward, backward, AdamW) in PyTorch, JAX, llm.c or onestep from Python: flags of `onestep bench step`.

With --lora N adapters of that rank on queries, keys and values are trained alone: PyTorch with the peft package.
llm.c is the C program train_gpt2.c, compiled as its Makefile does; LLMC names a checkout of it.
"""
from common import PRECISION, arguments, report

args = arguments(__doc__, ["torch", "torch_compile", "jax", "llmc", "onestep_python"],
                 [("layers", 4), ("heads", 4), ("embd", 128), ("ctx", 64), ("batch", 12), ("vocab", 65), ("bias", 0),
                  ("lora", 0)],
                 [PRECISION])
if args.lora and not args.framework.startswith("torch"):
    raise SystemExit(f"step.py: --lora is for torch: got {args.framework}")
if args.precision != "float32" and args.framework in ("jax", "llmc"):
    raise SystemExit(f"step.py: {args.framework} is timed in float32 alone")
LR, BETA1, BETA2, EPS, DECAY = 3e-4, 0.9, 0.95, 1e-8, 0.1

import numpy as np

batches = np.random.default_rng(0).integers(0, args.vocab, size=(8, args.batch, args.ctx + 1))
steps = 0


def next_batch():
    global steps
    steps += 1
    ids = batches[steps % len(batches)]
    return ids[:, :-1], ids[:, 1:]


def torch_step():
    import torch
    from torch.nn import functional as F

    from gpt_torch import Gpt
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = Gpt(args.layers, args.heads, args.embd, args.ctx, args.vocab, bool(args.bias))
    if args.lora:
        from peft import LoraConfig, get_peft_model
        model = get_peft_model(model, LoraConfig(r=args.lora, lora_alpha=args.lora, target_modules=["qkv"]))
    matrices = [p for p in model.parameters() if p.requires_grad and p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.requires_grad and p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=LR, betas=(BETA1, BETA2), eps=EPS, fused=True)
    run = torch.compile(model) if args.framework == "torch_compile" else model

    if args.framework == "onestep_python" and args.precision == "bf16_amx":
        import onestep.amp
        onestep.amp.set_bf16_order("amx")

    def step():
        ids, targets = (torch.from_numpy(x) for x in next_batch())
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision != "float32"):
            loss = F.cross_entropy(run(ids).view(-1, args.vocab), targets.reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def jax_step():
    import jax
    import jax.numpy as jnp

    import gpt_jax

    def loss_of(p, ids, targets):
        rows = gpt_jax.logits(p, ids, args.heads)
        chosen = jnp.take_along_axis(rows, targets.reshape(-1, 1), -1)[:, 0]
        return (jax.nn.logsumexp(rows, -1) - chosen).mean()

    def update(p, m, v, t, ids, targets):
        loss, grads = jax.value_and_grad(loss_of)(p, ids, targets)
        m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, grads)
        v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, grads)

        def moved(p, m, v):
            p = p * (1 - LR * DECAY) if p.ndim >= 2 else p
            return p - LR * (m / (1 - BETA1**t)) / (jnp.sqrt(v / (1 - BETA2**t)) + EPS)

        return jax.tree.map(moved, p, m, v), m, v, t + 1, loss

    compiled = jax.jit(update, donate_argnums=(0, 1, 2))
    p = gpt_jax.parameters(args.layers, args.embd, args.ctx, args.vocab, bool(args.bias))
    state = [p, jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p), jnp.float32(1)]

    def step():
        ids, targets = (x.astype(np.int32) for x in next_batch())
        *state[:], loss = compiled(*state, ids, targets)
        return float(loss)

    return step


def llmc_checkpoint(path):
    """A randomly initialised model in llm.c's file format: a header of 256 integers, then all tensors; the vocabulary is padded to 128s."""
    layers, width, padded = args.layers, args.embd, -(-args.vocab // 128) * 128
    a_layer = [width, width, 3 * width**2, 3 * width, width**2, width, width, width, 4 * width**2, 4 * width, 4 * width**2, width]
    header = np.zeros(256, np.int32)
    header[:8] = 20240326, 3, args.ctx, args.vocab, layers, args.heads, width, padded
    count = (padded + args.ctx + 2) * width + layers * sum(a_layer)
    with open(path, "wb") as file:
        header.tofile(file)
        (0.02 * np.random.default_rng(0).standard_normal(count, np.float32)).tofile(file)


def llmc_step():
    import ctypes
    import os
    import subprocess
    import tempfile
    from pathlib import Path
    source = Path(os.environ.get("LLMC", ""), "train_gpt2.c")
    if not source.is_file():
        raise SystemExit("step.py: set LLMC to a checkout of llm.c, the folder of train_gpt2.c")
    with tempfile.TemporaryDirectory() as folder:
        library, checkpoint = f"{folder}/llmc.so", f"{folder}/model.bin"
        subprocess.run(["cc", "-Ofast", "-march=native", "-fopenmp", "-DOMP", "-DTESTING", "-w", "-shared", "-fPIC", "-o", library,
                        source, "-lm"], check=True)
        program = ctypes.CDLL(library)
        llmc_checkpoint(checkpoint)
        model = ctypes.create_string_buffer(1 << 14)  # its struct, which has some hundreds of bytes
        program.gpt2_build_from_checkpoint(model, checkpoint.encode())

    def step():
        ids, targets = (np.ascontiguousarray(x, np.int32) for x in next_batch())
        program.gpt2_forward(model, *(ctypes.c_void_p(x.ctypes.data) for x in (ids, targets)),
                             *map(ctypes.c_size_t, ids.shape))
        program.gpt2_zero_grad(model)
        program.gpt2_backward(model)
        program.gpt2_update(model, *map(ctypes.c_float, (LR, BETA1, BETA2, EPS, DECAY)), steps)

    return step


makers = {"jax": jax_step, "llmc": llmc_step}
step = makers.get(args.framework, torch_step)()
report("gpt_step", args, step, min_reps=3, tokens_per_s=lambda ms: 1e3 * args.batch * args.ctx / ms)
