"""Handles of registered hooks."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any, Dict, Iterable, Optional, Tuple


class RemovableHandle:
    """Takes its hook out of a dict of hooks, and its mark out of the dicts of marks: handle.remove(), or `with handle:`. A copy
    or a pickle of it together with the dicts is one for the copies."""

    next_id = 0

    def __init__(self, hooks_dict: Dict[int, Any], *, extra_dict: Any = ()) -> None:
        self._refer_to(hooks_dict, *([extra_dict] if isinstance(extra_dict, dict) else extra_dict))
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1

    def _refer_to(self, *dicts: Optional[Dict]) -> None:
        self._dicts = [weakref.ref(OrderedDict() if held is None else held) for held in dicts]

    def remove(self) -> None:
        for reference in self._dicts:
            held = reference()
            if held is not None:
                held.pop(self.id, None)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()

    def __getstate__(self) -> Tuple[Optional[Dict], int, tuple]:
        hooks, *extra = [reference() for reference in self._dicts]
        return hooks, self.id, tuple(extra)

    def __setstate__(self, state: tuple) -> None:
        hooks, self.id, *rest = state
        self._refer_to(hooks, *((rest[0] if rest else None) or ()))
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)


def added(
    hooks: "OrderedDict[int, Any]",
    hook: Any,
    prepend: bool = False,
    marks: Iterable[Tuple["OrderedDict[int, Any]", bool]] = (),
) -> RemovableHandle:
    """Puts the hook into the dict, first with `prepend`, and its key into each of the marks that is switched on; returns its
    handle."""
    marked = [held for held, on in marks if on]
    handle = RemovableHandle(hooks, extra_dict=marked)
    for held in marked:
        held[handle.id] = True
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle
