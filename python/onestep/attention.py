"""The attention layers of the book's chapter, step by step: each has the names, initial values and random draws of its C++ type.

`layer(x)` maps [..., T, d_in] -> [..., T, d_out]; `layer(x, return_weights=True)` also gives the attention weights,
[..., T, T] or, of several heads, [..., H, T, T]."""

from __future__ import annotations

from typing import Tuple, Union

import onestep
from onestep import nn
from onestep._C import Tensor

__all__ = ["SimplifiedSelfAttention", "SelfAttention_v1", "SelfAttention_v2", "CausalAttention", "MultiHeadAttentionWrapper",
           "MultiHeadAttention"]

Result = Union[Tensor, Tuple[Tensor, Tensor]]


def _attend(queries: Tensor, keys: Tensor, values: Tensor, layer: nn.Module, return_weights: bool) -> Result:
    """softmax(Q K^T / sqrt(d)) V (Vaswani et al. 2017, section 3.2.1), with the mask and the dropout of `layer` if it has them."""
    tokens = queries.shape[-2]
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5  # [..., T, T]
    if hasattr(layer, "mask"):
        scores = scores.masked_fill(layer.mask[:tokens, :tokens], -onestep.inf)
    weights = scores.softmax(dim=-1)
    if hasattr(layer, "dropout"):
        weights = layer.dropout(weights)
    context = weights @ values
    return (context, weights) if return_weights else context


def _check(layer: nn.Module, x: Tensor, d_in: int, context_length: int = 0) -> None:
    name = type(layer).__name__
    if x.dim() < 2 or x.shape[-1] != d_in:
        raise onestep.ShapeError(f"{name}: x must be [..., T, {d_in}]: got {list(x.shape)}")
    if context_length and x.shape[-2] > context_length:
        raise onestep.ShapeError(f"{name}: {x.shape[-2]} tokens do not fit a context_length of {context_length}")


class SimplifiedSelfAttention(nn.Module):
    """softmax(x x^T) x: every token attends to every token, and nothing is trained."""

    def __init__(self, d_in: int) -> None:
        super().__init__()
        self.d_in = d_in

    def forward(self, x: Tensor, return_weights: bool = False) -> Result:
        _check(self, x, self.d_in)
        weights = (x @ x.transpose(-2, -1)).softmax(dim=-1)  # [..., T, T]
        context = weights @ x
        return (context, weights) if return_weights else context


class SelfAttention_v1(nn.Module):
    """softmax(Q K^T / sqrt(d_out)) V with Q = x W_query, K = x W_key, V = x W_value, matrices [d_in, d_out] drawn from [0, 1)."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.d_in = d_in
        self.W_query = nn.Parameter(onestep.rand(d_in, d_out))
        self.W_key = nn.Parameter(onestep.rand(d_in, d_out))
        self.W_value = nn.Parameter(onestep.rand(d_in, d_out))

    def forward(self, x: Tensor, return_weights: bool = False) -> Result:
        _check(self, x, self.d_in)
        return _attend(x @ self.W_query, x @ self.W_key, x @ self.W_value, self, return_weights)


class SelfAttention_v2(nn.Module):
    """As v1, with Linear layers: better initial values, and an optional bias."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.d_in = d_in
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor, return_weights: bool = False) -> Result:
        _check(self, x, self.d_in)
        return _attend(self.W_query(x), self.W_key(x), self.W_value(x), self, return_weights)


class CausalAttention(SelfAttention_v2):
    """Attention in which a token attends to itself and those before it, with dropout on the weights."""

    mask: Tensor

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False) -> None:
        super().__init__(d_in, d_out, qkv_bias)
        self.dropout = nn.Dropout(dropout)
        future = onestep.ones(context_length, context_length, dtype=onestep.bool).triu(diagonal=1)
        self.register_buffer("mask", future)

    def forward(self, x: Tensor, return_weights: bool = False) -> Result:
        _check(self, x, self.d_in, self.mask.shape[0])
        return super().forward(x, return_weights)


class MultiHeadAttentionWrapper(nn.Module):
    """Several CausalAttention heads with weights of their own, [..., T, d_in] -> [..., T, num_heads * d_out]."""

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)])

    def forward(self, x: Tensor, return_weights: bool = False) -> Result:
        if not return_weights:
            return onestep.cat([head(x) for head in self.heads], dim=-1)
        contexts, weights = zip(*(head(x, return_weights=True) for head in self.heads))
        return onestep.cat(contexts, dim=-1), onestep.stack(weights, dim=-3)


class MultiHeadAttention(CausalAttention):
    """All heads at once: projections that are split into heads of d_out / num_heads features, and one that mixes the heads."""

    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False) -> None:
        if num_heads < 1 or d_out % num_heads:
            raise onestep.ShapeError(f"MultiHeadAttention: num_heads must divide d_out: got {num_heads} and {d_out}")
        super().__init__(d_in, d_out, context_length, dropout, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.num_heads = num_heads

    def _split(self, x: Tensor) -> Tensor:
        """[..., T, d_out] -> [..., H, T, head_dim]; the view comes first: alone it would mix tokens and heads."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)

    def forward(self, x: Tensor, return_weights: bool = False) -> Result:
        _check(self, x, self.d_in, self.mask.shape[0])
        queries, keys, values = self._split(self.W_query(x)), self._split(self.W_key(x)), self._split(self.W_value(x))
        context, weights = _attend(queries, keys, values, self, return_weights=True)
        context = self.out_proj(context.transpose(-3, -2).flatten(-2))  # [..., T, d_out]
        return (context, weights) if return_weights else context
