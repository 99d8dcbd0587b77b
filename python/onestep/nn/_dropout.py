"""Functions that drop or draw: dropout of elements and channels, alpha dropout, rrelu."""

from __future__ import annotations

import math

import onestep
from onestep import _C

Tensor = _C.Tensor


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zeroes each element with probability p and scales the others by 1 / (1 - p)."""
    _check_probability(p)
    if not training or p == 0.0:
        return input
    return _C.dropout(input, p, training, inplace)


def _of_channels(input: Tensor) -> Tensor:
    """A place for one draw for each channel of [N, C, ...]."""
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return input.new_empty(input.shape[:2] + (1,) * (input.dim() - 2))


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool, batched_dims: int) -> Tensor:
    """Dropout with one draw for each channel; an input without a batch (batched_dims - 1 dims) keeps its shape."""
    _check_probability(p)
    if not training or p == 0.0:
        return input
    if input.dim() == batched_dims - 1:
        return _drop_channels(input.unsqueeze(0), p, training, inplace, batched_dims).squeeze(0)
    with onestep.no_grad():
        mask = _of_channels(input)
        mask = mask.zero_() if p == 1.0 else mask.bernoulli_(1 - p).div_(1 - p)
    return input.mul_(mask) if inplace else input * mask


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of [N, C, L] or [C, L]."""
    return _drop_channels(input, p, training, inplace, 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of [N, C, H, W]."""
    return _drop_channels(input, p, training, inplace, 0)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of [N, C, D, H, W] or [C, D, H, W]."""
    return _drop_channels(input, p, training, inplace, 5)


def _drop_to_alpha(input: Tensor, p: float, training: bool, inplace: bool, channels: bool) -> Tensor:
    """Sets what is dropped to -1.758, the least value of selu, and keeps mean 0 and variance 1 (Klambauer et al. 2017)."""
    _check_probability(p)
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if p == 1.0:
        return input.mul_(0.0) if inplace else input * 0.0
    alpha = 1.7580993408473766
    scale = 1.0 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    with onestep.no_grad():
        mask = (_of_channels(input) if channels else _C.empty_like(input)).bernoulli_(1 - p)
        shift = mask.add(-1).mul_(alpha * scale).add_(alpha * scale * p)
        mask.mul_(scale)
    return input.mul_(mask).add_(shift) if inplace else input * mask + shift


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and variance of selu's outputs."""
    return _drop_to_alpha(input, p, training, inplace, False)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels of [N, C, ...]."""
    return _drop_to_alpha(input, p, training, inplace, True)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """leaky_relu with a slope from [lower, upper] for each element in training, else with their mean (Xu et al. 2015)."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return _C.leaky_relu(input, (lower + upper) / 2, inplace)
    with onestep.no_grad():
        negative = input <= 0
        slopes = _C.ones_like(input)
        drawn = _C.empty(int(negative.sum()), dtype=_C.float64).uniform_(lower, upper)
        slopes[negative] = drawn.to(input.dtype)
    return input.mul_(slopes) if inplace else input * slopes


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """rrelu in place."""
    return rrelu(input, lower, upper, training, inplace=True)
