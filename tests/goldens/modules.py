"""Writes modules.json: how PyTorch prints, names, initialises and runs the modules of nn/ and attention/.

Run with torch 2.13.0 (CPU): python3 modules.py > modules.json
"""

import json
import math
import sys

import torch
from torch import nn


def attend(q, k, v, mask, drop):
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        tokens = q.shape[-2]
        scores = scores.masked_fill(mask[:tokens, :tokens].bool(), -math.inf)
    return drop((scores / q.shape[-1] ** 0.5).softmax(-1)) @ v


class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x):
        return attend(x @ self.W_query, x @ self.W_key, x @ self.W_value, None, lambda w: w)


class Projected(nn.Module):
    def __init__(self, d_in, d_out, bias):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, d_out, bias=bias))

    def add_causal(self, context_length, dropout):
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1))


class SelfAttention_v2(Projected):
    def forward(self, x):
        return attend(self.W_query(x), self.W_key(x), self.W_value(x), None, lambda w: w)


class CausalAttention(Projected):
    def __init__(self, d_in, d_out, context_length, dropout, bias):
        super().__init__(d_in, d_out, bias)
        self.add_causal(context_length, dropout)

    def forward(self, x):
        return attend(self.W_query(x), self.W_key(x), self.W_value(x), self.mask, self.dropout)


class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, bias):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, bias))

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], -1)


class MultiHeadAttention(Projected):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, bias):
        super().__init__(d_in, d_out, bias)
        self.num_heads = num_heads
        self.out_proj = nn.Linear(d_out, d_out)
        self.add_causal(context_length, dropout)

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value))
        return self.out_proj(attend(q, k, v, self.mask, self.dropout).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        return self.layers(x)


class SwiGLU(nn.Module):
    def __init__(self, d, d_ff):
        super().__init__()
        self.gate_proj = nn.Linear(d, d_ff, bias=False)
        self.up_proj = nn.Linear(d, d_ff, bias=False)
        self.down_proj = nn.Linear(d_ff, d, bias=False)

    def forward(self, x):
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


def flat(t):
    return [float("%.9g" % v) for v in t.detach().flatten().tolist()]


BUILD = {
    "SelfAttention_v1": lambda: SelfAttention_v1(5, 4),
    "SelfAttention_v2": lambda: SelfAttention_v2(5, 4, True),
    "CausalAttention": lambda: CausalAttention(5, 4, 7, 0.3, True),
    "MultiHeadAttentionWrapper": lambda: MultiHeadAttentionWrapper(5, 2, 7, 0.3, 3, False),
    "MultiHeadAttention": lambda: MultiHeadAttention(5, 8, 7, 0.25, 4, True),
    "FeedForward": lambda: FeedForward(5),
    "SwiGLU": lambda: SwiGLU(5, 7),
    "LayerNorm": lambda: nn.LayerNorm(5),
    "RMSNorm": lambda: nn.RMSNorm(5),
    "Linear": lambda: nn.Linear(5, 3),
}


def run(build):
    """seed 7: x = randn(2, 6, 5), then the module, then a training pass, then an evaluation pass."""
    torch.manual_seed(7)
    x = torch.randn(2, 6, 5)
    module = build()
    result = {"repr": repr(module), "keys": list(module.state_dict()), "x": flat(x)}
    result["parameters"] = {k: flat(p) for k, p in module.named_parameters()}
    result["count"] = sum(p.numel() for p in module.parameters())
    y = module(x)
    y.pow(2).sum().backward()
    result["y"] = flat(y)
    result["grads"] = {k: flat(p.grad) for k, p in module.named_parameters()}
    module.eval()
    result["y_eval"] = flat(module(x))
    return result


PRINTED = {
    "Embedding": nn.Embedding(7, 4),
    "Embedding padded": nn.Embedding(7, 4, padding_idx=0),
    "LayerNorm": nn.LayerNorm(4),
    "LayerNorm without bias": nn.LayerNorm((2, 4), eps=0.001, bias=False),
    "LayerNorm plain": nn.LayerNorm(4, elementwise_affine=False),
    "RMSNorm plain": nn.RMSNorm((2, 4), eps=1e-5, elementwise_affine=False),
    "GELU": nn.GELU(),
    "GELU tanh": nn.GELU("tanh"),
    "ReLU": nn.ReLU(),
    "SiLU": nn.SiLU(),
    "Tanh": nn.Tanh(),
    "Sigmoid": nn.Sigmoid(),
    "Dropout 0.1": nn.Dropout(0.1),
    "Dropout 0": nn.Dropout(0.0),
    "Dropout 1e-5": nn.Dropout(1e-5),
    "Dropout 1e-4": nn.Dropout(1e-4),
    "Sequential empty": nn.Sequential(),
    "Sequential": nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)),
    "ModuleList empty": nn.ModuleList(),
    "ModuleList": nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 3), nn.Linear(2, 2)]),
}

torch.set_num_threads(1)
result = {
    "torch": torch.__version__,
    "runs": {name: run(build) for name, build in BUILD.items()},
    "printed": {name: repr(module) for name, module in PRINTED.items()},
}
json.dump(result, sys.stdout, separators=(",", ":"))
print()
