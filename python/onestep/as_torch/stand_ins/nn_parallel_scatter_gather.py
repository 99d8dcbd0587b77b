"""torch.nn.parallel.scatter_gather for no device: there is one part, the whole."""
from __future__ import annotations

from typing import Any, Sequence


def scatter(inputs: Any, target_gpus: Sequence[Any] = (), dim: int = 0) -> list[Any]:
    return [inputs]


def gather(outputs: Sequence[Any], target_device: Any = None, dim: int = 0) -> Any:
    (whole,) = outputs
    return whole
