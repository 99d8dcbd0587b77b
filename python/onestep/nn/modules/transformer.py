"""The Transformer of Vaswani et al. 2017, and its parts."""

from __future__ import annotations

import copy
from typing import Any, Callable, Optional, Tuple, Union

import onestep
from onestep import _C
from onestep.nn import functional as F
from onestep.nn import init
from onestep.nn.modules.activation import GELU, ReLU
from onestep.nn.modules.attention import MultiheadAttention
from onestep.nn.modules.container import ModuleList
from onestep.nn.modules.dropout import Dropout
from onestep.nn.modules.linear import Linear
from onestep.nn.modules.module import Module
from onestep.nn.modules.normalization import LayerNorm

Tensor = _C.Tensor
Activation = Union[str, Callable[[Tensor], Tensor]]


def _activation(given: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return F.relu if given == "relu" else F.gelu


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """[size, size]: -inf above the diagonal, 0 elsewhere."""
    return onestep.full((size, size), float("-inf"), dtype=dtype or onestep.get_default_dtype()).triu(1)


def _is_causal(mask: Optional[Tensor], said: Optional[bool]) -> bool:
    """What was said, else whether the mask is the causal one."""
    if said is not None or mask is None or mask.dim() != 2 or mask.size(0) != mask.size(1) or not mask.is_floating_point():
        return bool(said)
    return bool(onestep.equal(mask, _causal_mask(mask.size(0), dtype=mask.dtype)))


class _TransformerLayer(Module):
    """What both kinds of layers have: `attentions`, a feed-forward part, and a norm and a dropout for each of them."""

    def _build(
        self, attentions: Tuple[str, ...], d_model: int, nhead: int, dim_feedforward: int, dropout: float,
        activation: Activation, layer_norm_eps: float, batch_first: bool, norm_first: bool, bias: bool, like: dict,
    ) -> None:
        for name in attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **like))
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **like)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **like)
        self.norm_first = norm_first
        parts = range(1, len(attentions) + 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **like))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _feed_forward(self, x: Tensor, last: Dropout) -> Tensor:
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _attended(
    attention: MultiheadAttention, x: Tensor, source: Tensor, mask: Optional[Tensor], padding: Optional[Tensor], causal: bool
) -> Tensor:
    return attention(x, source, source, key_padding_mask=padding, need_weights=False, attn_mask=mask, is_causal=causal)[0]


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and feed-forward, each with a residual sum and layer norm: [T, B, d_model] -> [T, B, d_model]."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._build(
            ("self_attn",),
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            {"device": device, "dtype": dtype},
        )

    def _attend(self, x: Tensor, mask: Optional[Tensor], padding: Optional[Tensor], causal: bool) -> Tensor:
        return self.dropout1(_attended(self.self_attn, x, x, mask, padding, causal))

    def forward(
        self,
        src: Tensor,
        src_mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
        is_causal: bool = False,
    ) -> Tensor:
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = src + self._attend(self.norm1(src), *masks)
            return x + self._feed_forward(self.norm2(x), self.dropout2)
        x = self.norm1(src + self._attend(src, *masks))
        return self.norm2(x + self._feed_forward(x, self.dropout2))


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to the encoder's output `memory`, and feed-forward."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._build(
            ("self_attn", "multihead_attn"),
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            {"device": device, "dtype": dtype},
        )

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
        tgt_key_padding_mask: Optional[Tensor] = None,
        memory_key_padding_mask: Optional[Tensor] = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.dropout1(_attended(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))

        def look_up(x: Tensor) -> Tensor:
            masks = (memory_mask, memory_key_padding_mask, memory_is_causal)
            return self.dropout2(_attended(self.multihead_attn, x, memory, *masks))

        if self.norm_first:
            x = tgt + attend(self.norm1(tgt))
            x = x + look_up(self.norm2(x))
            return x + self._feed_forward(self.norm3(x), self.dropout3)
        x = self.norm1(tgt + attend(tgt))
        x = self.norm2(x + look_up(x))
        return self.norm3(x + self._feed_forward(x, self.dropout3))


def _copies(layer: Module, n: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(n)])


class TransformerEncoder(Module):
    """num_layers copies of a layer, and a last norm."""

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Optional[Module] = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def _leaves_out(self, src: Tensor, mask: Optional[Tensor], padding: Optional[Tensor]) -> Optional[Tensor]:
        """Which tokens PyTorch computes nothing for (its nested tensors, where no gradient is asked for): [B, T]; None: all are."""
        layer = self.layers[0]
        if not self.enable_nested_tensor or not isinstance(layer, TransformerEncoderLayer) or layer.training:
            return None
        if padding is None or mask is not None or src.dim() != 3:
            return None
        attention = layer.self_attn
        plain = (
            not layer.norm_first
            and attention.batch_first
            and attention.in_proj_bias is not None
            and attention.in_proj_weight is not None
            and attention.num_heads % 2 == 0
            and (layer.activation in (F.relu, F.gelu) or isinstance(layer.activation, (ReLU, GELU)))
            and layer.norm1.eps == layer.norm2.eps
        )
        recorded = onestep.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in layer.parameters()))
        if not plain or recorded or onestep.is_autocast_enabled():
            return None
        left_out = padding if padding.dtype == onestep.bool else padding != 0
        behind = not bool((left_out[:, :-1] & ~left_out[:, 1:]).any())  # nothing is kept behind what is left out
        return left_out.unsqueeze(-1) if behind else None

    def forward(
        self,
        src: Tensor,
        mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
        is_causal: Optional[bool] = None,
    ) -> Tensor:
        causal = _is_causal(mask, is_causal)
        left_out = self._leaves_out(src, mask, src_key_padding_mask)
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
        src = src if left_out is None else src.masked_fill(left_out, 0.0)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """num_layers copies of a layer, and a last norm."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Optional[Module] = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
        tgt_key_padding_mask: Optional[Tensor] = None,
        memory_key_padding_mask: Optional[Tensor] = None,
        tgt_is_causal: Optional[bool] = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        causal = _is_causal(tgt_mask, tgt_is_causal)
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, causal, memory_is_causal
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder: src [S, B, d_model], tgt [T, B, d_model] -> [T, B, d_model]."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        args = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder
        if custom_encoder is None:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*args), num_encoder_layers, norm())
        self.decoder = custom_decoder
        if custom_decoder is None:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*args), num_decoder_layers, norm())
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Optional[Tensor] = None,
        tgt_mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
        tgt_key_padding_mask: Optional[Tensor] = None,
        memory_key_padding_mask: Optional[Tensor] = None,
        src_is_causal: Optional[bool] = None,
        tgt_is_causal: Optional[bool] = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """[sz, sz]: -inf above the diagonal, 0 elsewhere."""
        return _causal_mask(sz, device, dtype)
