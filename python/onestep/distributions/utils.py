"""What distributions of a program's own are made with (torch.distributions.utils)."""

from __future__ import annotations

from functools import update_wrapper
from typing import Any, Callable

import onestep
from onestep._C import Tensor
from onestep.distributions.distribution import clamp_probs, sum_last as _sum_rightmost, together as broadcast_all  # noqa: F401

euler_constant = 0.57721566490153286060


def _standard_normal(shape: Any, dtype: Any, device: Any = None) -> Tensor:
    return onestep.normal(onestep.zeros(shape, dtype=dtype), onestep.ones(shape, dtype=dtype))


class lazy_property:
    """A property whose value is computed once, with gradients, and kept as an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with onestep.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: sigmoid of one of two, softmax over the last dim of several."""
    return onestep.sigmoid(logits) if is_binary else onestep.softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits of probabilities, which are clamped to be neither 0 nor 1."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles of square matrices, row by row."""
    rows, columns = onestep.tril_indices(mat.shape[-1], mat.shape[-1], diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The square matrices that tril_matrix_to_vec took apart."""
    n = next((n for n in range(vec.shape[-1] + 2 + abs(diag)) if onestep.tril_indices(n, n, diag).shape[1] == vec.shape[-1]), None)
    if n is None:
        raise ValueError(f"vec_to_tril_matrix: {vec.shape[-1]} numbers are no lower triangle of a square matrix")
    rows, columns = onestep.tril_indices(n, n, diag)
    flat = onestep.zeros(*vec.shape[:-1], n ** 2, dtype=vec.dtype)
    return flat.index_copy(-1, rows * n + columns, vec).reshape(*vec.shape[:-1], n, n)
