"""Derivatives of functions as a whole (torch.autograd.functional). A function of one tensor may take it alone."""

from __future__ import annotations

from onestep import _C
from onestep._C import Tensor


def _inputs(inputs) -> list[Tensor]:
    return [inputs] if isinstance(inputs, Tensor) else list(inputs)


def _one(func):
    """func with a list of tensors as its arguments, and one tensor as its result."""

    def called(tensors):
        output = func(*tensors)
        if isinstance(output, (tuple, list)):
            if len(output) != 1:
                raise NotImplementedError("autograd.functional: a function with several outputs (stack or cat them)")
            output = output[0]
        return output

    return called


def _like(inputs, values):
    return values[0] if isinstance(inputs, Tensor) else tuple(values)


def _check(vectorize: bool, strategy: str) -> None:
    if strategy != "reverse-mode":
        raise NotImplementedError("autograd.functional: only reverse-mode is there")


def vjp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), v^T J)"""
    v = v[0] if isinstance(v, (tuple, list)) else v
    output, products = _C._vjp(_one(func), _inputs(inputs), v, create_graph)
    return output, _like(inputs, products)


def jvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), J v)"""
    vectors = [x.new_ones(x.shape) for x in _inputs(inputs)] if v is None else _inputs(v)
    return tuple(_C._jvp(_one(func), _inputs(inputs), vectors, create_graph))


def vhp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), v^T H), H the matrix of second derivatives of a single output"""
    vectors = [x.new_ones(x.shape) for x in _inputs(inputs)] if v is None else _inputs(v)
    output, products = _C._hvp(_one(func), _inputs(inputs), vectors, create_graph)
    return output, _like(inputs, products)


hvp = vhp  # H is symmetric


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """All derivatives of the output for every input: [output..., input...]"""
    _check(vectorize, strategy)
    return _like(inputs, _C._jacobian(_one(func), _inputs(inputs), create_graph))


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """All second derivatives of a single output: [input i..., input j...]"""
    _check(vectorize, outer_jacobian_strategy)
    rows = _C._hessian(_one(func), _inputs(inputs), create_graph)
    return rows[0][0] if isinstance(inputs, Tensor) else tuple(tuple(row) for row in rows)
