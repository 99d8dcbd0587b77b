"""Derivatives of functions as a whole (torch.autograd.functional). Inputs, and outputs, are a tensor or a tuple of tensors. With
`strict` every output has to depend on every input."""

from __future__ import annotations

from onestep import _C
from onestep._C import Tensor


def _tensors(values, what: str) -> list[Tensor]:
    """A tensor, or those of a tuple."""
    parts = (values,) if isinstance(values, Tensor) else values
    if not isinstance(parts, tuple) or not all(isinstance(part, Tensor) for part in parts):
        raise TypeError(f"{what} must be either a Tensor or a tuple of Tensors but got {type(values)}")
    return list(parts)


def _vectors(v, like: list[Tensor], of: str) -> list[Tensor]:
    """v, a tensor for each of `like`; a single number needs none."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {of} is a single Tensor with a single element.")
        return [_C.ones_like(like[0])]
    v = [v] if isinstance(v, Tensor) else list(v)
    if len(v) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
    for given, wanted in zip(v, like):
        if given.shape != wanted.shape:
            raise RuntimeError(f"v has invalid size: should be {wanted.shape} but got {given.shape}.")
    return v


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else _C.cat([part.flatten() for part in parts])


class _Function:
    """A function as one of a list of tensors with a single output: all its outputs behind each other."""

    def __init__(self, name: str, func, strict: bool):
        self.name, self.func, self.strict = name, func, strict

    def __call__(self, inputs: list[Tensor]) -> Tensor:
        outputs = self.func(*inputs)
        self.alone = isinstance(outputs, Tensor)
        self.outputs = _tensors(outputs, f"The outputs of the user-provided function given to {self.name}")
        for i, output in enumerate(self.outputs if self.strict else ()):
            self._check_strict(i, output, inputs)
        return _joined(self.outputs)

    def _check_strict(self, i: int, output: Tensor, inputs: list[Tensor]) -> None:
        grads = [None] * len(inputs)
        if output.requires_grad:
            grads = _C._grad([output], inputs, [_C.ones_like(output)], True, False, True, False)
        for j, grad in enumerate(grads):
            if grad is None:
                raise RuntimeError(
                    f"Output {i} of the user-provided function is independent of input {j}. This is not allowed in strict mode."
                )

    def apart(self, joined: Tensor, inner=()):
        """What `joined` has for each output: [output..., inner...]."""
        parts: tuple = (joined,)
        if len(self.outputs) > 1:
            parts = joined.split([output.numel() for output in self.outputs])
            parts = tuple(part.reshape((*output.shape, *inner)) for part, output in zip(parts, self.outputs))
        return parts[0] if self.alone else parts


class _ToTakeTimes(_Function):
    """One whose outputs are multiplied by v."""

    def __init__(self, name: str, func, strict: bool, v):
        super().__init__(name, func, strict)
        self.v = v

    def __call__(self, inputs: list[Tensor]) -> Tensor:
        output = super().__call__(inputs)
        _vectors(self.v, self.outputs, "the output of the user-provided function")
        return output


class _ToNumber(_Function):
    def __call__(self, inputs: list[Tensor]) -> Tensor:
        output = super().__call__(inputs)
        if not self.alone:
            raise RuntimeError(f"The function given to {self.name} should return a single Tensor")
        if output.numel() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {self.name} should contain a single element")
        return output


def _inputs(name: str, inputs) -> list[Tensor]:
    return _tensors(inputs, f"The inputs given to {name}")


def _like(inputs, values):
    return values[0] if isinstance(inputs, Tensor) else tuple(values)


def _check_strategy(name: str, vectorize: bool, strategy: str) -> None:
    """All of them give the same derivatives, from backward passes."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(f"torch.autograd.functional.{name}: forward-mode is only supported with vectorize=True.")


def vjp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), v^T J)"""
    function = _ToTakeTimes("vjp", func, strict, v)
    v = [v] if isinstance(v, Tensor) else v
    output, products = _C._vjp(function, _inputs("vjp", inputs), v and _joined(list(v)), create_graph)
    return function.apart(output), _like(inputs, products)


def jvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), J v)"""
    function, x = _Function("jvp", func, strict), _inputs("jvp", inputs)
    output, product = _C._jvp(function, x, _vectors(v, x, "the input to the user-provided function"), create_graph)
    return function.apart(output), function.apart(product)


def vhp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), v^T H), H the matrix of second derivatives of a single output"""
    x = _inputs("vhp", inputs)
    v = _vectors(v, x, "the input to the user-provided function")
    output, products = _C._hvp(_ToNumber("vhp", func, strict), x, v, create_graph)
    return output, _like(inputs, products)


hvp = vhp  # H is symmetric


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """All derivatives of every output for every input: [output..., input...]"""
    _check_strategy("jacobian", vectorize, strategy)
    function, x = _Function("jacobian", func, strict), _inputs("jacobian", inputs)
    parts = [function.apart(part, given.shape) for part, given in zip(_C._jacobian(function, x, create_graph), x)]
    return _like(inputs, parts) if function.alone else tuple(_like(inputs, of_output) for of_output in zip(*parts))


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """All second derivatives of a single output: [input i..., input j...]"""
    _check_strategy("hessian", vectorize, outer_jacobian_strategy)
    rows = _C._hessian(_ToNumber("hessian", func, strict), _inputs("hessian", inputs), create_graph)
    return rows[0][0] if isinstance(inputs, Tensor) else tuple(tuple(row) for row in rows)
