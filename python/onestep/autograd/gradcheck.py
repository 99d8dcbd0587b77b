"""Comparing gradients with differences (torch.autograd.gradcheck). The tolerance is the engine's, relative to the largest
derivative; eps, atol and rtol are accepted and not used."""

from __future__ import annotations

from onestep import _C
from onestep._C import Tensor


class GradcheckError(RuntimeError):
    """A derivative differs."""


def _run(check, func, inputs, raise_exception: bool) -> bool:
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    places = [i for i, value in enumerate(inputs) if isinstance(value, Tensor)]

    def called(tensors):
        args = list(inputs)
        for place, tensor in zip(places, tensors):
            args[place] = tensor
        outputs = func(*args)
        outputs = [outputs] if isinstance(outputs, Tensor) else [y for y in outputs if isinstance(y, Tensor)]
        outputs = [y for y in outputs if y.is_floating_point()]
        return outputs[0] if len(outputs) == 1 else _C.cat([y.reshape(-1) for y in outputs])

    passed, message = check(called, [inputs[i] for i in places])
    if not passed and raise_exception:
        raise GradcheckError(message)
    return passed


def gradcheck(func, inputs, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, **_options) -> bool:
    """Whether backward() gives the derivatives of `func` at `inputs` (float64, those that require grad)."""
    return _run(_C._gradcheck, func, inputs, raise_exception)


def gradgradcheck(func, inputs, grad_outputs=None, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, **_options) -> bool:
    """The same for second derivatives."""
    return _run(_C._gradgradcheck, func, inputs, raise_exception)
