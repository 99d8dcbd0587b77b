"""Functions of several ops that do under autocast what an op of their name does."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar

from onestep import _C

_Function = TypeVar("_Function", bound=Callable)


def casts(function: _Function) -> _Function:
    """The function, which under autocast follows the rule that python/src/autocast.cpp has for its name."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if not _C.is_autocast_enabled("cpu"):
            return function(*args, **keywords)
        return _C._call_as_listed(function.__name__, function, args, keywords)

    return call  # type: ignore[return-value]
