"""Sizes of n dims from one number, by the names PyTorch has for them."""

from __future__ import annotations

from typing import Any, Callable, Tuple

from onestep.nn.modules.conv import _tuple


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], Tuple]:
    """A function that gives n of a number, and a sequence as a tuple."""
    return lambda value: _tuple(value, n)


def _single(value: Any) -> Tuple:
    return _tuple(value, 1)


def _pair(value: Any) -> Tuple:
    return _tuple(value, 2)


def _triple(value: Any) -> Tuple:
    return _tuple(value, 3)


def _quadruple(value: Any) -> Tuple:
    return _tuple(value, 4)
