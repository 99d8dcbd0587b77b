"""torch.jit: functions and modules are what they are, since nothing is compiled."""

from __future__ import annotations

from typing import Any, Final  # noqa: F401

from onestep.nn import Module as ScriptModule  # noqa: F401


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """The function, class or module itself."""
    return obj


def trace(func: Any, example_inputs: Any = None, **options: Any) -> Any:
    """The function or module itself, which is called for values other than the examples, too."""
    return func


def _itself(function: Any = None, **options: Any) -> Any:
    return _itself if function is None or isinstance(function, bool) else function


export = ignore = unused = script_method = interface = script_if_tracing = _itself


def is_scripting() -> bool:
    return False


is_tracing = is_scripting


def annotate(kind: Any, value: Any) -> Any:
    """The value."""
    return value
