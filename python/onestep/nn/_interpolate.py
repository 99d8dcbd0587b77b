"""interpolate: what is asked for, and pictures of bytes, which PyTorch resamples in integers."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Tuple

from onestep import _C

Tensor = _C.Tensor

_DIMS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}  # of the input
_WITHOUT_CORNERS = ("nearest", "nearest-exact", "area")


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor:
    """The input [N, C, ...] resampled to `size`, or to its own times scale_factor (torch.nn.functional.interpolate)."""
    _check(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    if input.dtype == _C.uint8 and mode in ("bilinear", "bicubic"):
        factors = None if size is not None else _each(scale_factor, 2)
        sizes = _each(size, 2) if factors is None else [int(n * f) for n, f in zip(input.shape[2:], factors)]
        known = [None, None] if factors is None or recompute_scale_factor else factors
        for dim in (3, 2):
            input = _resampled(input, dim, sizes[dim - 2], known[dim - 2], mode == "bicubic", bool(align_corners), antialias)
        return input
    return _C.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)


def _each(value: Any, count: int) -> list:
    return list(value) if isinstance(value, (tuple, list)) else [value] * count


def _check(
    input: Tensor, size: Any, factor: Any, mode: str, align: Optional[bool], recompute: Optional[bool], antialias: bool
) -> None:
    """Refuses with the exceptions of PyTorch."""
    if mode in _WITHOUT_CORNERS and align is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if size is not None and factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and factor is None:
        raise ValueError("either size or scale_factor should be defined")
    for name, given in (("output size", size), ("scale_factor", factor)):
        if isinstance(given, (tuple, list)) and len(given) != input.dim() - 2:
            raise ValueError(
                f"Input and {name} must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{list(input.shape[2:])} and {name} of {given}"
            )
    if recompute and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError("Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input")
    if not 3 <= input.dim() <= 5 or mode not in (*_DIMS, *_WITHOUT_CORNERS):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear | "
            f"bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
        )
    if input.dim() != _DIMS.get(mode, input.dim()):
        raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_DIMS[mode]}D input")


def _triangle(x: float) -> float:
    return max(1 - abs(x), 0.0)


def _cubic(a: float) -> Callable[[float], float]:
    """The kernel of Keys 1981."""

    def kernel(x: float) -> float:
        x = abs(x)
        if x < 1:
            return ((a + 2) * x - (a + 3)) * x * x + 1
        return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0

    return kernel


def _taps(n: int, out: int, factor: Optional[float], cubic: bool, align: bool, antialias: bool) -> List[Dict[int, float]]:
    """The weights of each output, by the place in the input."""
    reach = 2 if cubic else 1
    kernel = _cubic(-0.5 if antialias else -0.75) if cubic else _triangle
    if align:
        step = (n - 1) / (out - 1) if out > 1 else 0.0
    else:
        step = 1 / factor if factor else n / out
    found = []
    for i in range(out):
        weights: Dict[int, float] = {}
        if antialias:
            wide = max(step, 1.0)
            center = step * (i + 0.5)
            places = range(max(int(center - reach * wide + 0.5), 0), min(int(center + reach * wide + 0.5), n))
            weights = {k: kernel((k - center + 0.5) / wide) for k in places}
            total = sum(weights.values())
            weights = {k: w / total for k, w in weights.items()}
        else:
            at = step * i if align else step * (i + 0.5) - 0.5
            at = at if cubic or align else max(at, 0.0)
            first = min(math.floor(at), n - 1)
            rest = min(max(at - first, 0.0), 1.0)
            for j in range(1 - reach, 1 + reach):  # what is outside is the nearest inside
                k = min(max(first + j, 0), n - 1)
                weights[k] = weights.get(k, 0.0) + kernel(j - rest)
        found.append(weights)
    return found


def _rounded(taps: List[Dict[int, float]]) -> Tuple[List[Dict[int, int]], int]:
    """The weights times 2^bits, as many as the largest one has room for in 16 bits, rounded away from 0 (Pillow's way, too)."""
    largest = max(0.0, *(w for weights in taps for w in weights.values()))
    bits = 0
    while bits < 22 and int(0.5 + largest * 2 ** (bits + 1)) < 2**15:
        bits += 1
    return [{k: int(math.copysign(0.5, w) + w * 2**bits) for k, w in weights.items()} for weights in taps], bits


def _resampled(
    input: Tensor, dim: int, out: int, factor: Optional[float], cubic: bool, align: bool, antialias: bool
) -> Tensor:
    """Bytes along one dim, rounded to bytes again."""
    if out < 1 or input.numel() == 0:
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got {list(input.shape)} and {out}")
    if out == input.size(dim):  # whatever the factor
        return input
    taps, bits = _rounded(_taps(input.size(dim), out, factor, cubic, align, antialias))
    shape = [out if d == dim else 1 for d in range(input.dim())]
    x = input.long()
    sums: Any = 2 ** (bits - 1)
    for j in range(max(map(len, taps))):
        chosen = [list(weights.items())[j] if j < len(weights) else (0, 0) for weights in taps]
        places, values = (_C.tensor(column) for column in zip(*chosen))
        sums = sums + x.index_select(dim, places) * values.reshape(shape)
    return (sums >> bits).clamp(0, 255).to(_C.uint8)
