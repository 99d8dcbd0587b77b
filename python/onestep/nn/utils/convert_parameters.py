"""All parameters as one vector, and back."""

from __future__ import annotations

from typing import Iterable

from onestep import _C

Tensor = _C.Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements one after another, [n]."""
    return _C.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives each parameter its part of vec."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    begin = 0
    for p in parameters:
        p.data = vec[begin : begin + p.numel()].view(p.shape).detach()
        begin += p.numel()
