"""Sums of products, statistics and runs that are a few other ops: functions and methods."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

from onestep import _C
from onestep._C import Tensor
from onestep._autocast import casts
from onestep._composed import _op
from onestep._out import with_out

__all__: list[str] = []


def _function(function):
    __all__.append(function.__name__)
    return with_out(function)


def _method_too(function):
    __all__.append(function.__name__)
    return _op(function)


# ---- products


@_method_too
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sum of products along the last dims of both; the product where one is a number."""
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    return _C._tensordot(input, other, [-1], [-1])


@_method_too
@casts
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta input + alpha (all products of two vectors)"""
    if vec1.dim() != 1 or vec2.dim() != 1:
        raise _C.ShapeError(f"addr: needs two vectors: got shapes {list(vec1.shape)} and {list(vec2.shape)}")
    dtype = _C.promote_types(input.dtype, _C.promote_types(vec1.dtype, vec2.dtype))
    if dtype == _C.bool:
        return addr(input.long(), vec1, vec2, beta=int(beta), alpha=int(alpha)) != 0
    a, b = vec1.to(dtype).unsqueeze(1), vec2.to(dtype).unsqueeze(0)
    return _C.addmm(input.to(dtype), a, b, beta=beta, alpha=alpha)


@_method_too
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta input + alpha (sum of the products of pairs of matrices)"""
    if batch1.dim() != 3 or batch2.dim() != 3 or batch1.size(0) != batch2.size(0):
        raise _C.ShapeError(f"addbmm: needs as many matrices: got shapes {list(batch1.shape)} and {list(batch2.shape)}")
    side_by_side, stacked = batch1.transpose(0, 1).flatten(1), batch2.flatten(0, 1)
    return _C.addmm(input, side_by_side, stacked, beta=beta, alpha=alpha)


@_method_too
def vdot(input, other) -> Tensor:
    """Sum of products of two vectors, of which the first is conjugated where it is complex."""
    return _C.dot(input.conj(), other)


def _euclidean_by_product(x1: Tensor, x2: Tensor) -> Tensor:
    """sqrt(a^2 - 2 a b + b^2) by one product: fast, with fewer digits where rows are near each other. The gradient at 0 is 0."""
    a, b = ((x * x).sum(-1, keepdim=True) for x in (x1, x2))
    squares = _C.cat([-2 * x1, a, _C.ones_like(a)], -1) @ _C.cat([x2, _C.ones_like(b), b], -1).mT
    none = squares <= 0
    return squares.masked_fill(none, 1).sqrt().masked_fill(none, 0)


@_function
@casts
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The distances between the rows of x1 [..., m, d] and of x2 [..., n, d]: [..., m, n]. Those for p = 2 by a product where
    there are more than 25 rows, or as compute_mode says: use_mm_for_euclid_dist or donot_use_mm_for_euclid_dist (torch.cdist)."""
    modes = {"use_mm_for_euclid_dist_if_necessary": 25, "use_mm_for_euclid_dist": 0, "donot_use_mm_for_euclid_dist": math.inf}
    if compute_mode is not None and compute_mode not in modes:
        raise ValueError(f"cdist: compute_mode must be one of {', '.join(modes)}: got {compute_mode}")
    few = modes[compute_mode or "use_mm_for_euclid_dist_if_necessary"]
    if p == 2 and max(x1.size(-2), x2.size(-2)) > few:
        return _euclidean_by_product(x1, x2)
    return _C.norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


# ---- integrals


def _widths(y: Tensor, x: Tensor, dim: int) -> Tensor:
    """The distances of the points x, so that they multiply what lies between the values y."""
    if x.dim() == 1 and y.dim() != 1:
        if x.size(0) != y.size(dim):
            raise _C.ShapeError(f"trapezoid: {x.size(0)} points for {y.size(dim)} values")
        x = x.reshape([-1] + [1] * (y.dim() - 1 - dim % y.dim()))
    elif x.dim() < y.dim():
        x = x.reshape([1] * (y.dim() - x.dim()) + list(x.shape))
    return x.diff(dim=dim)


@_function
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral along `dim` by trapezoids between the points x, or dx apart (1)."""
    if y.size(dim) == 0:
        return y.new_zeros([n for d, n in enumerate(y.shape) if d != dim % y.dim()])
    n = y.size(dim)
    sums = y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)
    if x is None:
        return sums.sum(dim) * ((1 if dx is None else dx) / 2)
    return (sums * _widths(y, x, dim)).sum(dim) / 2


trapz = trapezoid
__all__.append("trapz")


@_function
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integrals up to each point, as trapezoid."""
    n = y.size(dim)
    sums = y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)
    if x is None:
        return ((1 if dx is None else dx) / 2 * sums).cumsum(dim)
    return (sums * _widths(y, x, dim)).cumsum(dim) / 2


@_function
def gradient(input: Tensor, *, spacing=1, dim=None, edge_order: int = 1) -> list[Tensor]:
    """The derivatives along each dim by central differences, at the ends by those of the first or second order; `spacing` is the
    distance of neighbours, or their places, for all dims or one for each."""
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    steps = list(spacing) if isinstance(spacing, (list, tuple)) else [1 if spacing is None else spacing] * len(dims)
    if edge_order not in (1, 2):
        raise _C.Error(f"gradient: edge_order must be 1 or 2: got {edge_order}")
    if len(steps) != len(dims):
        raise _C.Error(f"gradient: needs a spacing for each dim: got {len(steps)} for {len(dims)}")
    x = input if input.is_floating_point() or input.is_complex() else input.to(_C.get_default_dtype())
    return [_slopes(x, step, d, edge_order) for step, d in zip(steps, dims)]


def _slopes(x: Tensor, step, dim: int, edge_order: int) -> Tensor:
    """Of the parabola through three neighbours, or of the line through two."""
    y = x.movedim(dim, -1)
    if y.size(-1) <= edge_order:
        raise _C.ShapeError(f"gradient: needs over {edge_order} elements along dim {dim}: got {y.size(-1)}")
    widths = (step[1:] - step[:-1]).to(y.dtype) if isinstance(step, Tensor) and step.dim() else _C.full([y.size(-1) - 1], float(step), dtype=y.dtype)
    if widths.numel() != y.size(-1) - 1:
        raise _C.ShapeError(f"gradient: needs {y.size(-1)} places along dim {dim}: got {widths.numel() + 1}")
    lines = (y[..., 1:] - y[..., :-1]) / widths
    left, right = widths[:-1], widths[1:]
    inside = (lines[..., :-1] * right + lines[..., 1:] * left) / (left + right)
    first, last = lines[..., :1], lines[..., -1:]
    if edge_order == 2:
        bend = (lines[..., 1:] - lines[..., :-1]) / (left + right)  # half of the second derivative
        first, last = first - bend[..., :1] * widths[:1], last + bend[..., -1:] * widths[-1:]
    return _C.cat([first, inside, last], -1).movedim(-1, dim)


# ---- covariances


def _check_weights(name: str, weights: Tensor, count: int) -> None:
    if weights.dim() > 1 or weights.numel() != count:
        raise _C.ShapeError(f"cov: {name} of shape {list(weights.shape)} for {count} observations")
    if bool((weights < 0).any()):
        raise _C.Error(f"cov: {name} cannot be negative")


@_method_too
def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """The covariances of the rows, whose columns are observations: repeated fweights times, of importance aweights."""
    if input.dim() > 2:
        raise _C.ShapeError(f"cov: needs a matrix or a vector: got shape {list(input.shape)}")
    if input.dtype == _C.bool:
        raise _C.DTypeError("cov: does not take bool")
    x = input if input.dim() == 2 else input.reshape(1, -1)
    weights = None
    if fweights is not None:
        if fweights.is_floating_point() or fweights.dtype == _C.bool:
            raise _C.DTypeError(f"cov: fweights must be integers: got {fweights.dtype}")
        _check_weights("fweights", fweights, x.size(1))
        weights = fweights
    if aweights is not None:
        if not aweights.is_floating_point():
            raise _C.DTypeError(f"cov: aweights must be floating: got {aweights.dtype}")
        _check_weights("aweights", aweights, x.size(1))
        weights = aweights if weights is None else weights * aweights
    total = x.size(1) if weights is None else weights.sum()
    if weights is not None and total == 0:
        raise _C.Error("cov: the weights sum to zero")
    mean = (x if weights is None else x * weights).sum(1) / total
    count = total - correction
    if aweights is not None and correction != 0:
        count = total - correction * (weights * aweights).sum() / total
    if count <= 0:
        warnings.warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
        count = count * 0
    x = x - mean.unsqueeze(1)
    return (x @ (x if weights is None else x * weights).T / count).squeeze()


@_method_too
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of the rows, whose columns are observations."""
    c = cov(input)
    if c.dim() == 0:
        return c / c
    scale = c.diagonal().sqrt()
    return (c / scale[:, None] / scale[None, :]).clip(-1, 1)


# ---- quantiles


def _quantile(op: str, input: Tensor, q, dim: int | None, keepdim: bool, interpolation: str, count_nan: bool) -> Tensor:
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise _C.Error(f"{op}: interpolation must be one of linear, lower, higher, midpoint or nearest: got {interpolation}")
    if input.numel() == 0:
        raise _C.Error(f"{op}: needs an element: got shape {list(input.shape)}")
    if input.dtype not in (_C.float32, _C.float64):
        raise _C.DTypeError(f"{op}: needs float32 or float64: got {input.dtype}")
    q = q if isinstance(q, Tensor) else _C.tensor(float(q), dtype=input.dtype)
    if q.dim() > 1 or q.dtype != input.dtype:
        raise _C.Error(f"{op}: q must be a number or a vector of {input.dtype}: got {q.dtype} of shape {list(q.shape)}")
    if not bool(((q >= 0) & (q <= 1)).all()):
        raise _C.Error(f"{op}: q must lie in [0, 1]")
    x = input.reshape(-1) if dim is None or input.dim() == 0 else input.movedim(dim, -1)
    values = x.sort(-1)[0]
    if count_nan:  # a NaN, which is last, is the answer
        place = q.reshape(-1) * (values.size(-1) - 1) + values.new_zeros(values.shape[:-1] + (1,))
        place = place.masked_fill(values.isnan().any(-1, keepdim=True), values.size(-1) - 1)
    else:
        place = q.reshape(-1) * (values.isnan().logical_not().sum(-1, keepdim=True) - 1)
        place = place.masked_fill(place < 0, 0)
    place = {"lower": _C.floor, "higher": _C.ceil, "nearest": _C.round}.get(interpolation, lambda p: p)(place)
    result = values.gather(-1, place.long())
    if interpolation in ("linear", "midpoint"):
        weight = place - place.floor() if interpolation == "linear" else _C.full_like(place, 0.5)
        result = _C.lerp(result, values.gather(-1, place.ceil().long()), weight)
    result = result.movedim(-1, 0)  # the quantiles, then the other dims
    if dim is None:
        result = result.reshape([-1] + [1] * input.dim() if keepdim else [-1])
    elif keepdim and input.dim():
        result = result.unsqueeze(1 + dim % input.dim())
    return result if q.dim() else result.squeeze(0)


@_method_too
@casts
def quantile(input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The q-quantiles along `dim`, those of a vector q in front; NaN where there is one."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation, True)


@_method_too
@casts
def nanquantile(input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """quantile of the elements that are not NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, False)


class Found(NamedTuple):
    """Values along a dim, and where they are."""

    values: Tensor
    indices: Tensor


def _found(input: Tensor, indices: Tensor, dim: int, keepdim: bool) -> Found:
    """What lies at the places in the last dim, [..., 1], which is moved back to `dim`."""
    if not input.dim():
        return Found(input.clone(), indices.reshape(()))
    indices = indices.movedim(-1, dim)
    values = input.gather(dim, indices)
    return Found(values, indices) if keepdim else Found(values.squeeze(dim), indices.squeeze(dim))


@_method_too
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False):
    """The lower median of the elements that are not NaN; along `dim` with its place."""
    if dim is None:
        return nanmedian(input.reshape(-1), 0).values
    x = input.movedim(dim, -1) if input.dim() else input.reshape(1)
    _, order = _C.sort(x.detach(), -1, stable=True)
    place = ((x.isnan().logical_not().sum(-1, keepdim=True) - 1) // 2).clamp(min=0)
    return _found(input, order.gather(-1, place), dim, keepdim)


@_method_too
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Found:
    """The most frequent value along `dim`, of several the least, and its last place."""
    x = (input.reshape(1) if not input.dim() else input.movedim(dim, -1)).detach()
    values, order = _C.sort(x, -1, stable=True)
    at = _C.arange(x.size(-1)).expand(x.shape)
    begins = _C.cat([_C.ones(x.shape[:-1] + (1,), dtype=_C.bool), values[..., 1:] != values[..., :-1]], -1)
    so_far = at - _C.cummax(at * begins, -1)[0]  # how many elements of the run came before
    return _found(input, order.gather(-1, so_far.argmax(-1, keepdim=True)), dim, keepdim)


class Histogram(NamedTuple):
    """How many elements are in each bin, and the edges of the bins."""

    hist: Tensor
    bin_edges: Tensor


@_method_too
def histogram(input: Tensor, bins, *, range=None, weight: Tensor | None = None, density: bool = False) -> Histogram:
    """Elements, or their weights, counted in `bins` of one width, or between the ascending edges `bins`; each bin has its lower
    edge, the last one both. `density`: divided by the sum and the widths."""
    x = input.detach().reshape(-1)
    if isinstance(bins, Tensor):
        edges = bins
    else:
        low, high = (float(e) for e in (range if range is not None else (x.min(), x.max()) if x.numel() else (0, 1)))
        half = 0.5 if low == high else 0.0
        edges = _C.linspace(low - half, high + half, bins + 1, dtype=x.dtype)
    count = edges.numel() - 1
    place = _C.searchsorted(edges, x, right=True) - 1
    place = place.masked_fill(x == edges[-1], count - 1)
    inside = (place >= 0) & (place < count) & ~x.isnan()
    weights = _C.ones_like(x) if weight is None else weight.detach().reshape(-1).to(x.dtype)
    hist = _C.zeros([count], dtype=x.dtype).index_add(0, place[inside], weights[inside])
    return Histogram(hist / (hist.sum() * (edges[1:] - edges[:-1])) if density else hist, edges)


# ---- runs


@_method_too
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None):
    """The elements without those that equal the one before them; with `dim` the slices along it."""
    rows = input.reshape(-1) if dim is None or input.dim() <= 1 else input.movedim(dim, 0).flatten(1)
    begins = rows[1:] != rows[:-1]
    first = _C.cat([_C.ones(min(1, rows.size(0)), dtype=_C.bool), begins if rows.dim() == 1 else begins.any(1)])
    kept = first.nonzero().reshape(-1)
    found = [input.reshape(-1)[kept] if dim is None else input.index_select(dim, kept) if input.dim() else input]
    if return_inverse:
        places = first.long().cumsum(0) - 1
        found.append(places.reshape(input.shape) if dim is None else places)
    if return_counts:
        found.append(_C.diff(kept, append=_C.tensor([rows.size(0)])))
    return found[0] if len(found) == 1 else tuple(found)
