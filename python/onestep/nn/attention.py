"""Names with which programs choose an implementation of attention: there is one."""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum
from typing import Any, Iterator

from onestep._missing import module_getattr

__getattr__ = module_getattr("torch.nn.attention")


class SDPBackend(IntEnum):
    """PyTorch's implementations."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[dict]:
    """A context in which scaled_dot_product_attention is the one that there is."""
    for backend in backends if isinstance(backends, (list, tuple, set)) else [backends]:
        if not isinstance(backend, SDPBackend):
            raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    yield {}
