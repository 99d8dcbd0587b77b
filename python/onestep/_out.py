"""The keyword `out` of functions that are written in Python."""

from __future__ import annotations

import functools

from onestep import _C


def with_out(function, of_tensor: bool = False):
    """The function with the keyword `out`: a tensor, or a tuple of them, that takes the result. With `of_tensor` its first
    argument must be a tensor."""

    @functools.wraps(function)
    def call(*args, out=None, **keywords):
        if of_tensor and args and not isinstance(args[0], _C.Tensor):
            raise TypeError(f"{function.__name__}(): argument 'input' (position 1) must be Tensor, not {type(args[0]).__name__}")
        result = function(*args, **keywords)
        if out is None:
            return result
        if hasattr(result, "_fields"):
            return type(result)(*(_C._write_out(function.__name__, *pair) for pair in zip(result, out)))
        return _C._write_out(function.__name__, result, out)

    return call
