"""Hooks around a module's gradients, by identity functions before and after its forward."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from onestep import _C
from onestep.autograd import Function


class _Identity(Function):
    """Hands tensors on; `on_backward(grads)` may replace their gradients."""

    @staticmethod
    def forward(ctx: Any, on_backward: Callable, *tensors: _C.Tensor) -> Any:
        ctx.on_backward = on_backward
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.on_backward(grads))


def _through(on_backward: Callable, values: Sequence[Any]) -> tuple:
    """values, of which the tensors that require a gradient have passed an _Identity."""
    places = [i for i, v in enumerate(values) if isinstance(v, _C.Tensor) and v.requires_grad]
    result = list(values)
    if places:
        outs = _Identity.apply(on_backward, *(values[i] for i in places))
        for i, out in zip(places, outs if isinstance(outs, tuple) else (outs,)):
            result[i] = out
    return tuple(result), places


class BackwardHooks:
    """One call of a module: collects grad_output, then calls the hooks with (module, grad_input, grad_output)."""

    def __init__(self, module: Any, hooks: Sequence[Callable], pre_hooks: Sequence[Callable]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: tuple = ()
        self.input_places: list = []
        self.inputs = 0

    def before(self, args: tuple) -> tuple:
        self.inputs = len(args)
        args, self.input_places = _through(self._inputs_reached, args)
        return args

    def after(self, result: Any) -> Any:
        single = isinstance(result, _C.Tensor)
        values = (result,) if single else tuple(result) if isinstance(result, (tuple, list)) else None
        if values is None:
            return result
        self.outputs = len(values)
        values, self.output_places = _through(self._outputs_reached, values)
        return values[0] if single else type(result)(values) if type(result) in (tuple, list) else type(result)(*values)

    def _outputs_reached(self, grads: tuple) -> tuple:
        full = [None] * self.outputs
        for i, grad in zip(self.output_places, grads):
            full[i] = grad
        self.grad_outputs = tuple(full)
        for hook in self.pre_hooks:
            changed = hook(self.module, self.grad_outputs)
            if changed is not None:
                self.grad_outputs = changed if isinstance(changed, tuple) else (changed,)
        if not self.input_places:
            for hook in self.hooks:
                if hook(self.module, (None,) * self.inputs, self.grad_outputs) is not None:
                    raise RuntimeError("Backward hooks should return None when no input of the module requires a gradient")
        return tuple(self.grad_outputs[i] for i in self.output_places)

    def _inputs_reached(self, grads: tuple) -> tuple:
        full: list = [None] * self.inputs
        for i, grad in zip(self.input_places, grads):
            full[i] = grad
        for hook in self.hooks:
            changed = hook(self.module, tuple(full), self.grad_outputs)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                if len(changed) != len(full):
                    raise RuntimeError(
                        f"Backward hook returned {len(changed)} gradients, but the module has {len(full)} inputs"
                    )
                full = list(changed)
        return tuple(full[i] for i in self.input_places)
