"""Hooks around a module's gradients, by identity functions before and after its forward."""

from __future__ import annotations

import warnings
from typing import Any, Callable, List, Optional, Sequence, Tuple

from onestep import _C, is_grad_enabled
from onestep.autograd import Function


class BackwardHookFunction(Function):
    """Hands tensors on; `on_backward(grads)` may replace their gradients."""

    @staticmethod
    def forward(ctx: Any, on_backward: Callable, materialize: bool, *tensors: _C.Tensor) -> Any:
        ctx.on_backward = on_backward
        ctx.set_materialize_grads(materialize)
        out = tuple(t.view_as(t) for t in tensors)
        ctx.mark_non_differentiable(*(o for o, t in zip(out, tensors) if not t.requires_grad))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, *ctx.on_backward(grads))


def _through(on_backward: Callable, materialize: bool, values: tuple) -> Tuple[tuple, Optional[List[int]]]:
    """values, whose tensors have passed the function, and their places: None where no gradient will come."""
    places = [i for i, v in enumerate(values) if isinstance(v, _C.Tensor)]
    if not (is_grad_enabled() and any(values[i].requires_grad for i in places)):
        return values, None
    result = list(values)
    for i, out in zip(places, BackwardHookFunction.apply(on_backward, materialize, *(values[i] for i in places))):
        result[i] = out
    return (tuple(result) if type(values) is tuple else type(values)(*result)), places


def _placed(places: Optional[List[int]], grads: Sequence[Any], size: int) -> tuple:
    """The gradients of a call's `size` values; None for what is no tensor."""
    full: list = [None] * size
    for i, grad in zip(places or (), grads):
        full[i] = grad
    return tuple(full)


def _check_count(what: str, got: Any, expected: Any) -> None:
    if len(got) != len(expected):
        raise RuntimeError(f"Backward {what}, got {len(got)}, but expected {len(expected)}")


def _check_sizes(changed: list, grads: Sequence[Any]) -> list:
    for new, old in zip(changed, grads):
        if new is not None and old is not None and new.shape != old.shape:
            raise RuntimeError("hook 'hook' has changed the size of value")
    return changed


class BackwardHooks:
    """One call of a module: collects grad_output, then calls the hooks with (module, grad_input, grad_output)."""

    def __init__(self, module: Any, hooks: Sequence[Callable], pre_hooks: Sequence[Callable]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: Any = None  # between the two functions' backward

    def before(self, args: tuple) -> tuple:
        """The arguments for forward."""
        self.inputs = len(args)
        args, self.input_places = _through(self._inputs_reached, True, args)
        return args

    def after(self, result: Any) -> Any:
        """The result for the caller."""
        if not isinstance(result, (_C.Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors"
                f" but received {type(result)}",
                stacklevel=4,
            )
        values = result if isinstance(result, tuple) else (result,)
        self.outputs = len(values)
        values, self.output_places = _through(self._outputs_reached, False, values)
        return values if isinstance(result, tuple) else values[0]

    def _outputs_reached(self, grads: tuple) -> list:
        full: Any = _placed(self.output_places, grads, self.outputs)
        for hook in self.pre_hooks:
            changed = hook(self.module, full)
            if changed is not None:
                _check_count("pre hook returned an invalid number of grad_output", changed, full)
                full = changed
        self.grad_outputs = full
        if self.input_places is None:
            self._call_without_inputs()
        return _check_sizes([full[i] for i in self.output_places or ()], grads)

    def _call_without_inputs(self) -> None:
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
            "gradients.",
            stacklevel=2,
        )
        for hook in self.hooks:
            changed = hook(self.module, (None,) * self.inputs, self.grad_outputs)
            if changed is not None and not (isinstance(changed, tuple) and all(grad is None for grad in changed)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for all "
                    "gradients."
                )
        self.grad_outputs = None

    def _inputs_reached(self, grads: tuple) -> Sequence[Any]:
        if self.grad_outputs is None:  # of a second derivative, which comes here past the outputs
            return grads
        full: Any = _placed(self.input_places, grads, self.inputs)
        for hook in self.hooks:
            changed = hook(self.module, full, self.grad_outputs)
            if changed is not None:
                _check_count("hook returned an invalid number of grad_input", changed, full)
                full = changed
        self.grad_outputs = None
        return _check_sizes([full[i] for i in self.input_places or ()], grads)
