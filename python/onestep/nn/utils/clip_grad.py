"""Clipping of gradients."""

from __future__ import annotations

from typing import Iterable, List, Optional, Union

import onestep
from onestep import _C

Tensor = _C.Tensor
Tensors = Union[Tensor, Iterable[Tensor]]


def _grads(parameters: Tensors) -> List[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Optional[bool] = None
) -> Tensor:
    """The norm of all elements of all tensors, as a scalar."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return onestep.tensor(0.0)
    total = _C.stack([t.norm(float(norm_type)) for t in tensors]).norm(float(norm_type))
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: Optional[bool] = None
) -> None:
    """Scales all gradients by max_norm / (total_norm + 1e-6) where that is below 1."""
    with onestep.no_grad():
        factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in _grads(parameters):
            grad.mul_(factor)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Optional[bool] = None,
) -> Tensor:
    """Scales all gradients by max_norm / (norm + 1e-6) where that is below 1; returns the norm before."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    with onestep.no_grad():
        total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


clip_grad_norm = clip_grad_norm_


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: Optional[bool] = None) -> None:
    """Cuts all gradients to [-clip_value, clip_value]."""
    most = float(clip_value)
    with onestep.no_grad():
        for grad in _grads(parameters):
            grad.clamp_(-most, most)
