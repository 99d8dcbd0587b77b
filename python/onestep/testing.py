"""Comparisons for tests (torch.testing)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onestep import _C
from onestep._C import Tensor
from onestep._numbers import unravel_index

__all__ = ["assert_allclose", "assert_close"]

_TOLERANCES = {_C.float16: (1e-3, 1e-5), _C.bfloat16: (1.6e-2, 1e-5), _C.float32: (1.3e-6, 1e-5), _C.float64: (1e-7, 1e-7)}


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
                 equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
                 check_stride: bool = False, msg: Any = None) -> None:  # fmt: skip
    """Raises AssertionError unless |actual - expected| <= atol + rtol |expected| for tensors, arrays and numbers, or sequences and
    mappings of them; the tolerances are those of the less exact dtype unless both are given."""
    if (rtol is None) != (atol is None):
        raise ValueError(f"rtol and atol must both be specified or both be unspecified, but got rtol={rtol} and atol={atol}")
    found = _difference(actual, expected, "", rtol, atol, equal_nan, check_dtype, check_stride)
    if found:
        raise AssertionError(found if msg is None else msg(found) if callable(msg) else msg)


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
                    msg: Any = None) -> None:  # fmt: skip
    """assert_close of what become tensors, whatever their dtypes (PyTorch before 1.12)."""
    actual, expected = _C.as_tensor(actual), _C.as_tensor(expected)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _difference(actual: Any, expected: Any, where: str, rtol, atol, equal_nan: bool, check_dtype: bool, check_stride: bool) -> str:
    """A sentence about the first difference; empty where there is none."""
    rest = (rtol, atol, equal_nan, check_dtype, check_stride)
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            return f"The keys of the mappings do not match{where}: {list(actual)} != {list(expected)}"
        parts = [(actual[key], expected[key], f" in item [{key!r}]{where}") for key in actual]
    elif all(isinstance(v, Sequence) and not isinstance(v, str) for v in (actual, expected)):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch{where}: {len(actual)} != {len(expected)}"
        parts = [(a, b, f" in item [{i}]{where}") for i, (a, b) in enumerate(zip(actual, expected))]
    elif actual is None or expected is None:
        return "" if actual is expected else f"None mismatch{where}: {actual} is not {expected}"
    else:
        numbers = all(isinstance(v, (int, float, complex)) for v in (actual, expected))
        a, b = (_C.tensor(v, dtype=_C.float64) if numbers and not isinstance(v, complex) else _C.as_tensor(v) for v in (actual, expected))
        return _of_tensors(a, b, where, *rest)
    return next((found for a, b, place in parts if (found := _difference(a, b, place, *rest))), "")


def _of_tensors(actual: Tensor, expected: Tensor, where: str, rtol, atol, equal_nan: bool, check_dtype: bool, check_stride: bool) -> str:
    if actual.shape != expected.shape:
        return f"The values for attribute 'shape' do not match{where}: {actual.shape} != {expected.shape}."
    if check_dtype and actual.dtype != expected.dtype:
        return f"The values for attribute 'dtype' do not match{where}: {actual.dtype} != {expected.dtype}."
    if check_stride and actual.stride() != expected.stride():
        return f"The values for attribute 'stride()' do not match{where}: {actual.stride()} != {expected.stride()}."
    if rtol is None:
        both = [_TOLERANCES.get(t.dtype, _TOLERANCES[_C.float32] if t.is_complex() else (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = (max(pair) for pair in zip(*both))
    a, b = (t.detach() if t.is_complex() else t.detach().double() for t in (actual, expected))
    close = _C.isclose(a, b, rtol, atol, equal_nan)
    if bool(close.all()):
        return ""
    distance = (a - b).abs().masked_fill(close, 0.0)
    relative = (distance / b.abs()).masked_fill(close, 0.0)
    wrong = close.numel() - int(close.sum())
    lines = [f"Tensor-likes are not {'close' if rtol or atol else 'equal'}{where}!\n"]
    if not close.dim():
        sizes = f"Absolute difference: {distance.item()} (up to {atol} allowed)\nRelative difference: {relative.item()} (up to {rtol} allowed)"
        return f"Scalars are not close{where}!\n\nExpected {b.item()} but got {a.item()}.\n{sizes}"
    lines.append(f"Mismatched elements: {wrong} / {close.numel()} ({100 * wrong / close.numel():.1f}%)")
    for kind, values, allowed in (("absolute", distance, atol), ("relative", relative, rtol)):
        place = tuple(int(i) for i in unravel_index(values.argmax(), values.shape))
        lines.append(f"Greatest {kind} difference: {values.max().item()} at index {place} (up to {allowed} allowed)")
    return "\n".join(lines)
