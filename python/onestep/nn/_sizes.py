"""Sizes of n dims, from one number or n of them."""

from __future__ import annotations

from typing import Any, List


def sizes(what: str, value: Any, n: int) -> List[Any]:
    """n sizes; `what` names them in the error."""
    result = list(value) if isinstance(value, (tuple, list)) else [value]
    if len(result) not in (1, n):
        raise RuntimeError(f"{what} must be one number or {n}: got {result}")
    return result * n if len(result) == 1 else result
