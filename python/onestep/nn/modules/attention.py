"""Multi-head attention as a layer."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import onestep
from onestep import _C
from onestep.nn import functional as F
from onestep.nn import init
from onestep.nn.modules.linear import NonDynamicallyQuantizableLinear, _empty
from onestep.nn.modules.module import Module

Tensor = _C.Tensor


def _added(mask: Optional[Tensor], dtype: Any) -> Optional[Tensor]:
    """A mask as numbers that are added to the scores: -inf where a bool one is True."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype != onestep.bool:
        raise AssertionError(f"only bool and floating types of masks are supported, but got {mask.dtype}")
    return _C.zeros(mask.shape, dtype=dtype).masked_fill_(mask, -math.inf)


class MultiheadAttention(Module):
    """Attention of query [T, B, embed_dim] to key [S, B, kdim] and value [S, B, vdim], batch first or without B as told.

    Masks: True = may not attend, or numbers added to the scores. Returns (output, weights [B, T, S] or None).
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: Optional[int] = None,
        vdim: Optional[int] = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads != 0:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        like = {"device": device, "dtype": dtype}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = _empty(3 * embed_dim, embed_dim, **like)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = _empty(embed_dim, embed_dim, **like)
            self.k_proj_weight = _empty(embed_dim, self.kdim, **like)
            self.v_proj_weight = _empty(embed_dim, self.vdim, **like)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", _empty(3 * embed_dim, **like) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **like)
        self.bias_k = _empty(1, 1, embed_dim, **like) if add_bias_kv else None
        self.bias_v = _empty(1, 1, embed_dim, **like) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        """The three inputs through their projections; one product where all are the same tensor."""
        if query is key and key is value and self._qkv_same_embed_dim:
            q, k, v = F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
            return q, k, v
        weights = (
            self.in_proj_weight.chunk(3)
            if self._qkv_same_embed_dim
            else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        )
        biases = (None, None, None) if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
        return q, k, v

    def _merged_mask(
        self, attn_mask: Optional[Tensor], padding: Optional[Tensor], shape: Tuple, extra: int, dtype: Any
    ) -> Optional[Tensor]:
        """Both masks as one to add to scores [B, heads, T, S]; the `extra` last keys may always be attended to."""
        b, heads, t, s = shape
        mask = _added(attn_mask, dtype)
        if mask is not None:
            wanted = (t, s) if mask.dim() == 2 else (b * heads, t, s)
            if tuple(mask.shape) != wanted:
                raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}.")
            mask = mask.reshape(1, 1, t, s) if mask.dim() == 2 else mask.reshape(b, heads, t, s)
        padding = _added(padding, dtype)
        if padding is not None:
            if tuple(padding.shape) != (b, s):
                raise AssertionError(f"expecting key_padding_mask shape of {(b, s)}, but got {padding.shape}")
            padding = padding.reshape(b, 1, 1, s)
            mask = padding.expand(b, heads, 1, s) if mask is None else mask + padding
        return mask if mask is None or extra == 0 else F.pad(mask, (0, extra))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = True,
        attn_mask: Optional[Tensor] = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        if query.dim() not in (2, 3):
            raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor")
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        if query.size(-1) != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {query.size(-1)}")
        batched = query.dim() == 3
        q, k, v = self._projected(query, key, value)
        if not batched:
            q, k, v = q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0)
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            q, k, v = q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)
        b, t, s = q.size(0), q.size(1), k.size(1)
        if self.bias_k is not None and self.bias_v is not None:
            k = _C.cat([k, self.bias_k.expand(b, 1, -1)], 1)
            v = _C.cat([v, self.bias_v.expand(b, 1, -1)], 1)
        if self.add_zero_attn:
            k, v = F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1))
        q, k, v = (x.reshape(b, x.size(1), self.num_heads, self.head_dim).transpose(1, 2) for x in (q, k, v))
        causal = is_causal and key_padding_mask is None and not need_weights
        mask = (
            None
            if causal
            else self._merged_mask(attn_mask, key_padding_mask, (b, self.num_heads, t, s), k.size(2) - s, q.dtype)
        )
        dropout_p = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = _C.matmul(q * math.sqrt(1.0 / self.head_dim), k.transpose(-2, -1))
            weights = F.softmax(scores if mask is None else scores + mask, -1)
            weights = F.dropout(weights, dropout_p, dropout_p > 0)
            out = _C.matmul(weights, v)
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            out = F.scaled_dot_product_attention(q, k, v, mask, dropout_p, causal)
        # tokens first in memory, as in PyTorch: a dropout behind this draws in that order
        out = out.permute(2, 0, 1, 3).reshape(t, b, self.embed_dim)
        out = F.linear(out, self.out_proj.weight, self.out_proj.bias)  # no call, as in PyTorch: its hooks are not for this
        if not batched:
            return out.squeeze(1), None if weights is None else weights.squeeze(0)
        return out.transpose(0, 1) if self.batch_first else out, weights
