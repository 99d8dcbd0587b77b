"""torch._dynamo: its switches are accepted, nothing is compiled."""
from types import SimpleNamespace

config = SimpleNamespace(suppress_errors=False, cache_size_limit=8, verbose=False)


def reset() -> None:
    """Accepted: nothing is compiled."""


def disable(fn=None, recursive: bool = True):
    """The function itself, also as a decorator with arguments."""
    return fn if fn is not None else (lambda f: f)
