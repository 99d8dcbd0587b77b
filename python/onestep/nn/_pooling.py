"""Pooling functions composed of those in one and two dims: power means, unpooling, and all of three dims."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence

from onestep import _C
from onestep._autocast import casts
from onestep.nn._sizes import sizes as _sizes

Tensor = _C.Tensor


def _batched(name: str, input: Tensor) -> Tensor:
    if input.dim() not in (4, 5):
        raise RuntimeError(f"{name}: Expected 4D or 5D tensor, but got {input.dim()}D: {list(input.shape)}")
    return input if input.dim() == 5 else input.unsqueeze(0)


def _unbatched(found: Any) -> Any:
    """The same without the batch of one, of a result or a tuple of them."""
    return found.squeeze(0) if isinstance(found, Tensor) else tuple(part.squeeze(0) for part in found)


def _planes(x: Tensor) -> Tensor:
    """[N, C, D, H, W] -> [N, C D, H, W]."""
    return x.flatten(1, 2)


def _lines(x: Tensor) -> Tensor:
    """[N, C, D, H, W] -> [N, C, D, H W]: images whose columns run along D."""
    return x.flatten(3)


def _volume(pooled: Tensor, like: Tensor) -> Tensor:
    """[N, C, D', H W] -> [N, C, D', H, W] with the last sizes of `like`."""
    return pooled.unflatten(3, like.shape[3:])


def _of_planes(pooled: Tensor, x: Tensor) -> Tensor:
    """[N, C D, H', W'] -> [N, C, D, H', W']."""
    return pooled.unflatten(1, x.shape[1:3])


def _largest(x: Tensor, in_planes: Any, in_lines: Any, return_indices: bool) -> Any:
    """The largest values of windows, first in each plane, then over the planes; and their places in D H W."""
    if not return_indices:
        values = _of_planes(in_planes(_planes(x), False), x)
        return _volume(in_lines(_lines(values), False), values)
    values, places = (_of_planes(part, x) for part in in_planes(_planes(x), True))
    most, lines = (_volume(part, values) for part in in_lines(_lines(values), True))
    depths = lines.div(values.size(3) * values.size(4), rounding_mode="floor")
    found = places.flatten(2).gather(2, lines.flatten(2)).view(lines.shape)
    return most, depths * (x.size(3) * x.size(4)) + found


@casts
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window of [N, C, D, H, W] or [C, D, H, W], with return_indices its place in D H W, too."""
    k, p = _sizes("max_pool3d: kernel_size", kernel_size, 3), _sizes("max_pool3d: padding", padding, 3)
    d = _sizes("max_pool3d: dilation", dilation, 3)
    s = k if stride is None or stride == [] else _sizes("max_pool3d: stride", stride, 3)
    x = _batched("max_pool3d", input)
    found = _largest(
        x,
        lambda planes, indices: _C.max_pool2d(planes, k[1:], s[1:], p[1:], d[1:], ceil_mode, indices),
        lambda lines, indices: _C.max_pool2d(lines, [k[0], 1], [s[0], 1], [p[0], 0], [d[0], 1], ceil_mode, indices),
        return_indices,
    )
    return found if x is input else _unbatched(found)


def _window_sizes(size: int, out: int, k: int, s: int, p: int, padded: bool) -> List[int]:
    """How many places each window has, with padding or without."""
    low, high = (-p, size + p) if padded else (0, size)
    return [min(i * s - p + k, high) - max(i * s - p, low) for i in range(out)]


@casts
def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Optional[int] = None,
) -> Tensor:
    """The mean of each window of [N, C, D, H, W] or [C, D, H, W]."""
    k, p = _sizes("avg_pool3d: kernel_size", kernel_size, 3), _sizes("avg_pool3d: padding", padding, 3)
    s = k if stride is None or stride == [] else _sizes("avg_pool3d: stride", stride, 3)
    if divisor_override is not None and divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    x = _batched("avg_pool3d", input)
    sums = _of_planes(_C.avg_pool2d(_planes(x), k[1:], s[1:], p[1:], ceil_mode, True, 1), x)
    result = _volume(_C.avg_pool2d(_lines(sums), [k[0], 1], [s[0], 1], [p[0], 0], ceil_mode, True, 1), sums)
    if divisor_override is not None:
        result = result / divisor_override
    else:
        for dim in range(3):
            counts = _window_sizes(x.size(dim + 2), result.size(dim + 2), k[dim], s[dim], p[dim], count_include_pad)
            shape = [1] * 5
            shape[dim + 2] = len(counts)
            result = result / _C.tensor(counts, dtype=x.dtype).view(shape)
    return result if x is input else result.squeeze(0)


def _adaptive_sizes(input: Tensor, output_size: Any) -> List[int]:
    """output_size, in which None keeps the input's."""
    if input.dim() < 4:
        raise ValueError(f"Input dimension should be at least 4, got {input.dim()}")
    return [old if size is None else size for size, old in zip(_sizes("output_size", output_size, 3), input.shape[-3:])]


@casts
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of output_size windows that cover [N, C, D, H, W] or [C, D, H, W]."""
    sizes = _adaptive_sizes(input, output_size)
    x = _batched("adaptive_avg_pool3d", input)
    means = _of_planes(_C.adaptive_avg_pool2d(_planes(x), sizes[1:]), x)
    lines = _lines(means)
    result = _volume(_C.adaptive_avg_pool2d(lines, [sizes[0], lines.size(3)]), means)
    return result if x is input else result.squeeze(0)


@casts
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Largest values of output_size windows that cover [N, C, D, H, W] or [C, D, H, W]."""
    sizes = _adaptive_sizes(input, output_size)
    x = _batched("adaptive_max_pool3d", input)
    found = _largest(
        x,
        lambda planes, indices: _C.adaptive_max_pool2d(planes, sizes[1:], indices),
        lambda lines, indices: _C.adaptive_max_pool2d(lines, [sizes[0], lines.size(3)], indices),
        return_indices,
    )
    return found if x is input else _unbatched(found)


# ---- power means


def _lp_pool(input: Tensor, norm_type: float, kernel: List[int], stride: Any, ceil_mode: bool, avg: Any, most: Any) -> Tensor:
    if math.isinf(norm_type):
        sign = 1 if norm_type > 0 else -1
        return sign * most(sign * input.abs(), kernel, stride, 0, 1, ceil_mode=ceil_mode)
    out = avg(input.pow(norm_type), kernel, kernel if stride is None else stride, 0, ceil_mode)
    return (out.sign() * out.abs().relu()).mul(math.prod(kernel)).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The sum of x^norm_type of each window of [N, C, L], to the power 1 / norm_type."""
    kernel = _sizes("lp_pool1d: kernel_size", kernel_size, 1)
    return _lp_pool(input, norm_type, kernel, stride, ceil_mode, _C.avg_pool1d, _C.max_pool1d)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The sum of x^norm_type of each window of [N, C, H, W], to the power 1 / norm_type."""
    kernel = _sizes("lp_pool2d: kernel_size", kernel_size, 2)
    return _lp_pool(input, norm_type, kernel, stride, ceil_mode, _C.avg_pool2d, _C.max_pool2d)


@casts
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The sum of x^norm_type of each window of [N, C, D, H, W], to the power 1 / norm_type."""
    kernel = _sizes("lp_pool3d: kernel_size", kernel_size, 3)
    return _lp_pool(input, norm_type, kernel, stride, ceil_mode, avg_pool3d, max_pool3d)


# ---- max pooling back


def _unpool(
    n: int, input: Tensor, indices: Tensor, kernel: Any, stride: Any, padding: Any, output_size: Optional[Sequence[int]]
) -> Tensor:
    k, p = _sizes("max_unpool: kernel_size", kernel, n), _sizes("max_unpool: padding", padding, n)
    s = k if stride is None else _sizes("max_unpool: stride", stride, n)
    sizes = [(input.size(d - n) - 1) * s[d] + k[d] - 2 * p[d] for d in range(n)]
    if output_size is not None:
        asked = list(output_size)[2:] if len(output_size) == n + 2 else list(output_size)
        if len(asked) != n:
            raise ValueError(
                f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(asked)}'"
            )
        for d in range(n):
            low, high = sizes[d] - s[d], sizes[d] + s[d]
            if not low < asked[d] < high:
                raise ValueError(f'invalid output_size "{asked}" (dim {d} must be between {low} and {high})')
        sizes = asked
    if indices.shape != input.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices tensor "
            f"with shape: {list(indices.shape)}"
        )
    lead = input.shape[: input.dim() - n]
    if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < math.prod(sizes):
        volume = "x".join(map(str, sizes))
        raise RuntimeError(f"Found an invalid max index: {int(indices.max())} (output volumes are of size {volume})")
    flat = input.new_zeros(*lead, math.prod(sizes)).scatter(-1, indices.flatten(-n), input.flatten(-n))
    return flat.view(*lead, *sizes)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Optional[Sequence[int]] = None,
) -> Tensor:
    """The values of max_pool1d at their places, with zeros between."""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@casts
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Optional[Sequence[int]] = None,
) -> Tensor:
    """The values of max_pool2d at their places, with zeros between."""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@casts
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Optional[Sequence[int]] = None,
) -> Tensor:
    """The values of max_pool3d at their places, with zeros between."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)
