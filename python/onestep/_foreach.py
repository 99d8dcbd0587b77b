"""torch._foreach_*: an op on every tensor of a list, with numbers, tensors, or lists of them as its other arguments."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable

from onestep import _C
from onestep._C import Tensor


@lru_cache(maxsize=None)
def foreach(name: str) -> Callable:
    """The function torch._foreach_NAME."""
    method = getattr(Tensor, name, None) or getattr(_C, name)

    def over_lists(tensors: Any, *others: Any, **options: Any) -> Any:
        tensors = list(tensors)
        if name == "norm" and "ord" in options:
            options["p"] = options.pop("ord")
        if name in ("addcmul", "addcmul_", "addcdiv", "addcdiv_") and len(others) == 3:  # the value comes last
            options["value"], others = others[2], others[:2]

        def part(value: Any, i: int) -> Any:
            return value[i] if isinstance(value, (list, tuple)) else value

        results = tuple(
            method(x, *(part(o, i) for o in others), **{key: part(o, i) for key, o in options.items()})
            for i, x in enumerate(tensors)
        )
        return None if name.endswith("_") else results

    return over_lists
