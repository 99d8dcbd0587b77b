"""Convolutions in three dims: those in two dims, with the depth of the kernel among the channels."""

from __future__ import annotations

from typing import Any, Optional

from onestep import _C
from onestep.nn._sizes import sizes

Tensor = _C.Tensor


def _check(name: str, input: Tensor, weight: Tensor) -> Tensor:
    """The input with a batch."""
    if weight.dim() != 5 or weight.size(2) == 0:
        raise RuntimeError(f"{name}: needs a weight of 5 dims and a kernel: got {list(weight.shape)}")
    if input.dim() not in (4, 5):
        raise RuntimeError(
            f"Expected 4D (unbatched) or 5D (batched) input to {name}, but got input of size: {list(input.shape)}"
        )
    return input if input.dim() == 5 else input.unsqueeze(0)


def _with_bias(name: str, result: Tensor, bias: Optional[Tensor]) -> Tensor:
    if bias is None:
        return result
    if tuple(bias.shape) != (result.size(1),):
        raise RuntimeError(
            f"{name}: expected bias to be 1-dimensional with {result.size(1)} elements, but got bias of size {list(bias.shape)}"
        )
    return result + bias.view(-1, 1, 1, 1)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """[N, C_in, D, H, W] with weight [C_out, C_in / groups, KD, KH, KW] -> [N, C_out, D', H', W']."""
    x, depth = _check("conv3d", input, weight), weight.size(2)
    s, d = sizes("conv3d: stride", stride, 3), sizes("conv3d: dilation", dilation, 3)
    reach = d[0] * (depth - 1)
    if padding == "same":
        if s != [1, 1, 1]:
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        sides, planes = (reach // 2, reach - reach // 2), padding
    else:
        p = [0, 0, 0] if padding == "valid" else sizes("conv3d: padding", padding, 3)
        sides, planes = (p[0], p[0]), p[1:]
    x = _C.pad(x, (0, 0, 0, 0, *sides)) if any(sides) else x
    n, channels, length = x.shape[:3]
    if length <= reach:
        raise RuntimeError(
            f"Calculated padded input size per channel: ({length} x ...). Kernel size: ({reach + 1} x ...). "
            "Kernel size can't be greater than actual input size"
        )
    starts = _C.arange(0, length - reach, s[0])
    window = (starts.unsqueeze(1) + _C.arange(depth) * d[0]).flatten()
    x = x.index_select(2, window).unflatten(2, (len(starts), depth))  # [N, C, D', KD, H, W]
    x = x.transpose(1, 2).reshape(n * len(starts), channels * depth, *x.shape[-2:])
    out = _C.conv2d(x, weight.flatten(1, 2), None, s[1:], planes, d[1:], groups)
    out = _with_bias("conv3d", out.unflatten(0, (n, len(starts))).transpose(1, 2), bias)
    return out if input.dim() == 5 else out.squeeze(0)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The gradient of conv3d as an op: [N, C_in, D, H, W] with weight [C_in, C_out / groups, KD, KH, KW]."""
    x = _check("conv_transpose3d", input, weight)
    given = dict(stride=stride, padding=padding, output_padding=output_padding, dilation=dilation)
    s, p, extra, d = (sizes(f"conv_transpose3d: {name}", value, 3) for name, value in given.items())
    if any(e >= max(a, b) for e, a, b in zip(extra, s, d)):
        raise RuntimeError("output padding must be smaller than either stride or dilation")
    (n, _, length), depth = x.shape[:3], weight.size(2)
    planes = x.transpose(1, 2).flatten(0, 1)
    out = _C.conv_transpose2d(planes, weight.flatten(1, 2), None, s[1:], p[1:], extra[1:], groups, d[1:])
    out = out.unflatten(0, (n, length)).unflatten(2, (-1, depth))  # [N, D, C_out, KD, H', W']
    out = out.permute(0, 2, 1, 3, 4, 5).flatten(2, 3)
    places = (_C.arange(length).unsqueeze(1) * s[0] + _C.arange(depth) * d[0]).flatten()
    full = (length - 1) * s[0] + d[0] * (depth - 1) + 1 + extra[0]
    whole = out.new_zeros(n, out.size(1), full, *out.shape[-2:]).index_add(2, places, out)
    out = _with_bias("conv_transpose3d", whole.narrow(2, p[0], full - 2 * p[0]), bias)
    return out if input.dim() == 5 else out.squeeze(0)
