"""Handles of registered hooks."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any


class RemovableHandle:
    """Takes its hook out of a dict of hooks: handle.remove(), or `with handle:`."""

    next_id = 0

    def __init__(self, hooks: "OrderedDict[int, Any]", extra: Any = None) -> None:
        self._hooks = weakref.ref(hooks)
        self._extra = weakref.ref(extra) if extra is not None else None
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1

    def remove(self) -> None:
        for reference in (self._hooks, self._extra):
            hooks = reference() if reference is not None else None
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()

    def __getstate__(self) -> dict:
        return {"id": self.id}

    def __setstate__(self, state: dict) -> None:
        self.id, self._extra = state["id"], None
        self._hooks = weakref.ref(OrderedDict())


def added(hooks: "OrderedDict[int, Any]", hook: Any, prepend: bool = False) -> RemovableHandle:
    """Puts the hook into the dict, first with `prepend`; returns its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle
