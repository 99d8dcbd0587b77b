"""The keyword `out` of functions that are written in Python."""

from __future__ import annotations

import functools

from onestep import _C


def with_out(function):
    """The function with the keyword `out`: a tensor, or a tuple of them, that takes the result."""

    @functools.wraps(function)
    def call(*args, out=None, **keywords):
        result = function(*args, **keywords)
        return result if out is None else _C._write_out(function.__name__, result, out)

    return call
