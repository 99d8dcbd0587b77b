"""Samples of images at places that a grid names (Jaderberg et al. 2015)."""

from __future__ import annotations

import math
import warnings
from typing import Any, List, Optional, Sequence

from onestep import _C
from onestep._autocast import casts

Tensor = _C.Tensor


def _default(name: str, align_corners: Optional[bool]) -> bool:
    if align_corners is None:
        warnings.warn(
            f"Default {name} behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if "
            "the old behavior is desired. See the documentation of grid_sample for details.",
            stacklevel=3,
        )
    return bool(align_corners)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: Optional[bool] = None) -> Tensor:
    """The places [N, H, W, 2] that theta [N, 2, 3] takes those of an image to; [N, D, H, W, 3] with theta [N, 3, 4]."""
    align_corners = _default("grid_sample and affine_grid", align_corners)
    n = len(size) - 2
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if n not in (2, 3) or tuple(theta.shape[1:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of affine matrices of shape Nx{n}x{n + 1} for size {list(size)}. Got {list(theta.shape)}."
        )
    if any(length <= 0 for length in size):
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    lines = []
    for d, length in enumerate(size[2:]):
        line = _C.linspace(-1, 1, length, dtype=theta.dtype) if length > 1 else _C.zeros(1, dtype=theta.dtype)
        line = line if align_corners else line * ((length - 1) / length)
        lines.append(line.view([-1 if i == d else 1 for i in range(n)]).expand(tuple(size[2:])))
    base = _C.stack([*reversed(lines), _C.ones(tuple(size[2:]), dtype=theta.dtype)], -1)
    grid = base.view(1, -1, n + 1).expand(size[0], -1, n + 1).bmm(theta.transpose(1, 2))
    return grid.view(size[0], *size[2:], n)


def _reflected(x: Tensor, size: int, align_corners: bool) -> Tensor:
    """x, mirrored at both ends until it lies between them."""
    low, high = (0.0, float(size - 1)) if align_corners else (-0.5, size - 0.5)
    span = high - low
    if span == 0:
        return x * 0
    x = (x - low).abs()
    turns = (x.detach() / span).floor()
    rest = x - turns * span
    return _C.where(turns % 2 == 0, rest, span - rest) + low


def _inside(x: Tensor, size: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Where a place counted in pixels is looked up."""
    if padding_mode == "reflection":
        x = _reflected(x, size, align_corners)
    if padding_mode == "zeros":
        return x
    return _C.where((x > 0) & (x < size - 1), x, x.detach().clamp(0, size - 1))  # on the border, too, it does not move


def _indices(near: List[List[Tensor]], sizes: Sequence[int]) -> Tensor:
    """The index in all images of each combination of whole places, some of each dim; -1 outside, and some pixel's, which a weight
    of NaN spoils, for NaN: int64 [N P, K]."""
    return _C._pixel_indices([place for places in near for place in places], list(sizes)).flatten(0, 1)


def _sums(input: Tensor, indices: Tensor, weights: Optional[Tensor], sizes: Sequence[int]) -> Tensor:
    """input [N, C, ...] at the indices [N P, K], weighted and added up: [N, C, *sizes], of P places."""
    n, c = input.shape[:2]
    pixels = input.flatten(2).transpose(1, 2).flatten(0, 1)
    sums = _C._embedding_bag(indices, pixels, None, "sum", weights, -1)
    return sums.view(n, *sizes, c).movedim(-1, 1).contiguous()


def _cubic(t: Tensor) -> List[Tensor]:
    """The weights of four neighbours at distances 1 + t, t, 1 - t and 2 - t, with a = -0.75 (Keys 1981)."""
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _check(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    for name, value, known in (
        ("mode", mode, "'bilinear', 'nearest' or 'bicubic'"),
        ("padding_mode", padding_mode, "'zeros', 'border', or 'reflection'"),
    ):
        if f"'{value}'" not in known:
            raise ValueError(f"nn.functional.grid_sample(): expected {name} to be {known}, but got: '{value}'")
    n = input.dim() - 2
    if n not in (2, 3) or grid.dim() != input.dim() or grid.size(0) != input.size(0) or grid.size(-1) != n:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions and batch, and a grid with "
            f"size {n} in last dimension, but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if mode == "bicubic" and n != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input.dtype != grid.dtype or not input.is_floating_point():
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to have same floating dtype, but input has {input.dtype} and grid has "
            f"{grid.dtype}"
        )
    if any(size == 0 for size in input.shape[2:]):
        raise RuntimeError(
            f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {list(input.shape)}"
        )


@casts
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Optional[bool] = None
) -> Tensor:
    """input [N, C, H, W] at the places (x, y) of grid [N, H', W', 2], -1 and 1 the borders: [N, C, H', W']; or with a depth."""
    _check(input, grid, mode, padding_mode)
    align_corners = _default("grid_sample and affine_grid", align_corners)
    sizes: Any = input.shape[2:]
    out = grid.shape[1:-1]
    places = []
    for coordinate, size in zip(reversed(grid.flatten(1, -2).unbind(-1)), sizes):
        x = (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2
        places.append(x if mode == "bicubic" else _inside(x, size, padding_mode, align_corners))
    if mode == "nearest":
        values = _sums(input, _indices([[x.detach().round().nan_to_num(-1)] for x in places], sizes), None, out)
        if not grid.requires_grad:
            return values
        return values + grid.masked_fill(_C.ones_like(grid, dtype=_C.bool), 0).sum()  # which gives it a gradient of zeros
    floors = [x.detach().floor() for x in places]
    parts = [x - floor for x, floor in zip(places, floors)]
    floors = [floor.masked_fill(part.detach().isnan(), math.nan) for floor, part in zip(floors, parts)]  # of infinite places
    if mode == "bicubic":
        factors = [_cubic(t) for t in parts]
        near = [[_inside(f + i, size, padding_mode, align_corners) for i in range(-1, 3)] for f, size in zip(floors, sizes)]
    else:
        factors = [[1 - t, t] for t in parts]
        near = [[floor, floor + 1] for floor in floors]
    weights = factors[0]
    for line in factors[1:]:
        weights = [a * b for a in weights for b in line]
    return _sums(input, _indices(near, sizes), _C.stack(weights, -1).flatten(0, 1), out)
