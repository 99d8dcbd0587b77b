"""autocast: products of float32 tensors in bfloat16."""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional

import onestep
from onestep import _C


class autocast:
    """A context or decorator in which linear layers, matmul, attention and convolutions round float32 operands to bfloat16, sum in
    float32 and give bfloat16, and losses and what else PyTorch lists are float32 (torch.autocast).
    On a device that is not there it does nothing."""

    def __init__(
        self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: Optional[bool] = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device, self.fast_dtype = device_type, onestep.bfloat16 if dtype is None else dtype
        self._enabled = enabled and device_type == "cpu"  # as in PyTorch, other devices that are not there switch it off
        if self._enabled and self.fast_dtype not in (onestep.bfloat16, onestep.float32):
            raise NotImplementedError(
                f"autocast: {self.fast_dtype} is not there on a CPU (use dtype=torch.bfloat16, or convert the model with .to())"
            )
        self._switches: List[Any] = []

    def __enter__(self) -> "autocast":
        self._switches.append(_C._AutocastSwitch())
        on = self._enabled and self.fast_dtype == onestep.bfloat16
        self._switches[-1].enter(on if self.device == "cpu" else _C.is_autocast_enabled("cpu"))
        return self

    def __exit__(self, *error: Any) -> None:
        self._switches.pop().exit()

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return run


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast changes anything."""
    return device_type == "cpu"


def custom_fwd(function: Optional[Callable] = None, **kwargs: Any) -> Callable:
    """The function itself: it runs under the autocast of where it is called."""
    return (lambda f: f) if function is None else function


def custom_bwd(function: Optional[Callable] = None, **kwargs: Any) -> Callable:
    """The function itself: the backward pass runs without autocast."""
    return (lambda f: f) if function is None else function
