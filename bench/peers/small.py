#!/usr/bin/env python3
"""Small graphs, where a framework's overhead counts, in PyTorch, JAX or onestep from Python: the cases of `onestep bench small`."""
from common import arguments, report

args = arguments(__doc__, ["torch", "jax", "onestep_python"], [], [("case", "mlp", ["mlp", "mha", "scalarops"])])
OPS = 100  # of scalarops

import numpy as np

random = np.random.default_rng(0)
draw = lambda *shape: random.standard_normal(shape, dtype=np.float32)
points = draw(32, 2)
targets = np.tanh(points[:, :1] * points[:, 1:])


def torch_mlp():
    import torch
    from torch import nn
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer, x, y = torch.optim.SGD(model.parameters(), 0.05), torch.from_numpy(points), torch.from_numpy(targets)

    def step():
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


def torch_mha():
    """Two heads of unfused causal attention, 3 -> 2 features, 6 tokens, 2 sequences."""
    import torch
    from torch import nn
    layers = [nn.Linear(3, 2, bias=False) for _ in range(3)] + [nn.Linear(2, 2)]
    future = torch.triu(torch.ones(6, 6, dtype=torch.bool), 1)
    x = torch.from_numpy(draw(2, 6, 3))
    leaves = [p for layer in layers for p in layer.parameters()]

    def call():
        for leaf in leaves:
            leaf.grad = None
        q, k, v = (layer(x).view(2, 6, 2, 1).transpose(1, 2) for layer in layers[:3])
        scores = (q @ k.transpose(-2, -1)).masked_fill(future, -torch.inf)
        y = torch.softmax(scores / k.shape[-1]**0.5, -1) @ v
        layers[3](y.transpose(1, 2).reshape(2, 6, 2)).sum().backward()

    return call


def torch_scalarops():
    import torch
    a, b = torch.tensor(1.001, requires_grad=True), torch.tensor(0.999, requires_grad=True)

    def call():
        a.grad = b.grad = None
        y = a
        for _ in range(OPS // 2):
            y = y * b + a
        y.backward()

    return call


def jax_mlp():
    import jax
    import jax.numpy as jnp
    sizes = (2, 16, 16, 1)
    state = [[(jnp.asarray(draw(i, o) * 0.3), jnp.zeros(o)) for i, o in zip(sizes, sizes[1:])]]

    def loss(layers):
        h = points
        for w, b in layers[:-1]:
            h = jnp.tanh(h @ w + b)
        return ((h @ layers[-1][0] + layers[-1][1] - targets)**2).mean()

    step = jax.jit(lambda layers: jax.tree.map(lambda p, g: p - 0.05 * g, layers, jax.grad(loss)(layers)))

    def call():
        state[0] = jax.block_until_ready(step(state[0]))

    return call


def jax_mha():
    import jax
    import jax.numpy as jnp

    import gpt_jax
    p = {name: {"w": jnp.asarray(draw(3, 2))} for name in "qkv"} | {"o": {"w": jnp.asarray(draw(2, 2)), "b": jnp.zeros(2)}}
    x = jnp.asarray(draw(12, 3))

    def total(p):
        heads = (gpt_jax.split_heads(gpt_jax.linear(x, p[name]), 2, 2) for name in "qkv")
        return gpt_jax.linear(gpt_jax.merge_heads(gpt_jax.attention(*heads)), p["o"]).sum()

    step = jax.jit(jax.value_and_grad(total))
    return lambda: jax.block_until_ready(step(p))


def jax_scalarops():
    import jax
    import jax.numpy as jnp

    def chain(a, b):
        y = a
        for _ in range(OPS // 2):
            y = y * b + a
        return y

    step = jax.jit(jax.grad(chain, argnums=(0, 1)))
    a, b = jnp.float32(1.001), jnp.float32(0.999)
    return lambda: jax.block_until_ready(step(a, b))


if args.framework != "jax":
    import torch
    torch.set_num_threads(args.threads)
make = globals()[f"{'jax' if args.framework == 'jax' else 'torch'}_{args.case}"]
report("small", args, make(), warmup=20, median_us=lambda ms: 1e3 * ms)
