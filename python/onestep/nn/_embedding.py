"""Rows of a table by index; sums, means and largest values of bags of them."""

from __future__ import annotations

from typing import Optional

import onestep
from onestep import _C

Tensor = _C.Tensor


def _renormalize(weight: Tensor, ids: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows that are looked up and longer than max_norm to that length, in place."""
    with onestep.no_grad():
        rows = ids.unique()
        norms = weight[rows].norm(norm_type, -1, keepdim=True)
        weight[rows] = weight[rows] * _C.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: Optional[int] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of weight [V, D] by index: int64 [...] -> [..., D]; row padding_idx gets no gradient, and with scale_grad_by_freq
    each gradient is divided by how often its row is looked up."""
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    rows = _C.embedding(input, weight, padding_idx)
    if scale_grad_by_freq and rows.requires_grad:
        counts = input.reshape(-1).bincount(minlength=weight.size(0))[input].unsqueeze(-1)
        rows.register_hook(lambda grad: grad / counts)
    return rows


def _check(
    input: Tensor,
    weight: Tensor,
    offsets: Optional[Tensor],
    mode: str,
    by_frequency: bool,
    sparse: bool,
    scale: Optional[Tensor],
) -> None:
    if scale is not None and input.shape != scale.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({scale.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if input.dim() == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
            f"However, found offsets of type {type(offsets)}"
        )
    if input.dim() == 1 and (offsets is None or offsets.dim() != 1):
        raise ValueError("offsets has to be a 1D Tensor" + (" but got None" if offsets is None else ""))
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and by_frequency:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if scale is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    if offsets is not None and offsets.numel() > 0:
        if int(offsets[0]) != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {int(offsets[0])}"
            )
        if int(offsets[-1]) > input.size(0):
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length({input.size(0)}) but got offsets[-1] of {int(offsets[-1])}"
            )


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Optional[Tensor] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Optional[Tensor] = None,
    include_last_offset: bool = False,
    padding_idx: Optional[int] = None,
) -> Tensor:
    """The sum, mean or largest values of the rows of weight of each bag: a row of input [B, N], or with offsets [B] what lies
    between them in input [N]. Rows of padding_idx do not count."""
    _check(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights)
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    if include_last_offset and offsets is not None:
        if offsets.numel() == 0:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        end = int(offsets[-1])
        input, offsets = input[:end], offsets[:-1]
        per_sample_weights = None if per_sample_weights is None else per_sample_weights[:end]
    if padding_idx is not None:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
            )
        padding_idx = padding_idx % rows
    if scale_grad_by_freq and weight.requires_grad and _C.is_grad_enabled():
        counts = input.reshape(-1).bincount(minlength=weight.size(0)).clamp(min=1).unsqueeze(1)
        weight = weight.view_as(weight)
        weight.register_hook(lambda grad: grad / counts)
    return _C._embedding_bag(input, weight, offsets, mode, per_sample_weights, padding_idx)
