#!/usr/bin/env python3
"""What a call from Python costs, in PyTorch or in onestep: small ops, an index, attention of the book's size written out in Python."""
from common import arguments, report

CASES = ["add", "exp", "index", "softmax", "matmul", "shape", "attention"]
args = arguments(__doc__, ["torch", "onestep_python"], [], [("case", "add", CASES)])
CALLS = 200  # timed together: one takes less than a microsecond

import torch

torch.set_num_threads(args.threads)
torch.manual_seed(0)
x, square = torch.randn(4, 3), torch.randn(4, 4)


def attention():
    """Two heads of causal attention, 3 -> 2 features, 6 tokens, 2 sequences, forwards and backwards."""
    layers = [torch.nn.Linear(3, 2, bias=False) for _ in range(3)] + [torch.nn.Linear(2, 2)]
    future = torch.triu(torch.ones(6, 6, dtype=torch.bool), 1)
    words = torch.randn(2, 6, 3)
    leaves = [p for layer in layers for p in layer.parameters()]

    def call():
        for leaf in leaves:
            leaf.grad = None
        q, k, v = (layer(words).view(2, 6, 2, 1).transpose(1, 2) for layer in layers[:3])
        scores = (q @ k.transpose(-2, -1)).masked_fill(future, -torch.inf)
        y = torch.softmax(scores / k.shape[-1] ** 0.5, -1) @ v
        layers[3](y.transpose(1, 2).reshape(2, 6, 2)).sum().backward()

    return call


call = {"add": lambda: x + x, "exp": lambda: x.exp(), "index": lambda: x[1:3, 0], "softmax": lambda: torch.softmax(x, -1),
        "matmul": lambda: square @ square, "shape": lambda: x.shape, "attention": attention()}[args.case]


def calls():
    for _ in range(CALLS):
        call()


report("call", args, calls, warmup=20, median_us=lambda ms: 1e3 * ms / CALLS)
