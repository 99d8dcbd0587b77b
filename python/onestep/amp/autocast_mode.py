"""autocast: accepted where it changes nothing, refused where it would."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional

import onestep


class autocast:
    """A context or decorator. In float32, or not enabled, it does nothing; other dtypes are not there yet."""

    def __init__(
        self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: Optional[bool] = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device, self.fast_dtype = device_type, onestep.bfloat16 if dtype is None else dtype
        self._enabled = enabled and device_type == "cpu"  # as in PyTorch, other devices that are not there switch it off
        if self._enabled and self.fast_dtype != onestep.float32:
            raise NotImplementedError(
                f"autocast: {self.fast_dtype} is not there on this CPU (use enabled=False or "
                "dtype=float32, or convert the model with .to(torch.bfloat16))"
            )

    def __enter__(self) -> "autocast":
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return run


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast changes anything."""
    return False


def custom_fwd(function: Optional[Callable] = None, **kwargs: Any) -> Callable:
    """The function itself: there is nothing to cast."""
    return (lambda f: f) if function is None else function


def custom_bwd(function: Optional[Callable] = None, **kwargs: Any) -> Callable:
    """The function itself."""
    return (lambda f: f) if function is None else function
