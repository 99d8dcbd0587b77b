"""Ops of a user's own (torch.autograd.Function)."""

from __future__ import annotations

import functools
import inspect
import weakref

from onestep import _C
from onestep._C import Tensor
from onestep.autograd.grad_mode import no_grad


class FunctionCtx:
    """What forward leaves for backward; attributes may be set at will."""

    def __init__(self, needs_input_grad: tuple[bool, ...]):
        self._context = _C._Context()
        self._inputs: tuple = ()  # while forward runs
        self._apart: list = []  # what is saved and no tensor of the engine: sparse and complex ones
        self._saved_inputs: list = []  # for each of what is saved: a weak reference to the input that it is, or None
        self.needs_input_grad = needs_input_grad

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps inputs and outputs; `saved_tensors` gives them in backward."""
        self._apart = [t if isinstance(t, Tensor) and not _in_engine(t) else None for t in tensors]
        self._context.save_for_backward([t if apart is None else None for t, apart in zip(tensors, self._apart)])
        self._saved_inputs = [weakref.ref(t) if any(t is value for value in self._inputs) and t is not None else None for t in tensors]

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """Inputs that are still there are themselves, with their places in the graph."""
        inputs = [apart if reference is None else reference() for reference, apart in zip(self._saved_inputs, self._apart)]
        return tuple(t if of is None else of for t, of in zip(self._context.saved_tensors(), inputs))

    saved_variables = saved_tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """These inputs were written to; they are outputs, too."""
        self._context.mark_dirty(list(tensors))

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """These outputs have no gradient."""
        self._context.mark_non_differentiable(list(tensors))

    def set_materialize_grads(self, value: bool) -> None:
        """Whether outputs without a gradient get zeros (the default) or None."""
        self._context.set_materialize_grads(value)


class Function:
    """An op with `forward(ctx, *args)` and `backward(ctx, *grads)`, both static, called by `apply(*args)`. Or `forward(*args)`
    and `setup_context(ctx, inputs, output)`. What is no tensor among arguments and results goes by as it is."""

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function.")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Runs the op and enters it into the graph; only an op with setup_context takes arguments by name."""
        sets_up = "setup_context" in _names_of(cls)
        if sets_up and (kwargs or cls.forward.__defaults__ or cls.forward.__kwdefaults__):
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        elif kwargs:  # as in PyTorch
            raise TypeError(f"{cls.__name__}.apply() takes no keyword arguments")
        places = [i for i, arg in enumerate(args) if _in_engine(arg)]
        needs = tuple(_in_engine(arg) and arg.requires_grad for arg in args)
        ctx = FunctionCtx(needs)
        result: list = []  # what forward returned: tensors and others

        def forward(_tensors):
            ctx._inputs = args
            if sets_up:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
            ctx._inputs = ()
            result.append(output)
            return [value for value in _as_tuple(output) if _in_engine(value)]

        def backward(grads):
            found = _as_tuple(cls.backward(ctx, *_with_gaps(shape, grads)))
            if len(found) < len(args) or any(grad is not None for grad in found[len(args) :]):
                raise RuntimeError(
                    f"function {cls.__name__}Backward returned an incorrect number of gradients (expected {len(args)}, got {len(found)})"
                )
            for i in places:
                if found[i] is not None and not _in_engine(found[i]):
                    raise TypeError(f"{cls.__name__}.backward must return tensors or None, not {type(found[i]).__name__}")
            return [found[i] for i in places]

        tensors = iter(_C._apply(cls.__name__ + "Backward", ctx._context, forward, backward, [args[i] for i in places]))
        output = result.pop()
        shape = [_in_engine(value) for value in _as_tuple(output)]
        values = tuple(next(tensors) if is_tensor else value for is_tensor, value in zip(shape, _as_tuple(output)))
        return values if isinstance(output, (tuple, list)) else values[0]


def _in_engine(value: object) -> bool:
    """Whether it is a tensor of the engine: sparse and complex ones only say that they are tensors."""
    return issubclass(type(value), Tensor)


def _names_of(cls) -> set:
    return {name for base in cls.__mro__ if base is not Function for name in vars(base)}


def _as_tuple(values) -> tuple:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _with_gaps(shape: list[bool], grads) -> list:
    grads = iter(grads)
    return [next(grads) if is_tensor else None for is_tensor in shape]


def once_differentiable(backward):
    """Marks a backward that cannot itself be differentiated: its result is a constant."""

    @functools.wraps(backward)
    def wrapped(ctx, *grads):
        with no_grad():
            return backward(ctx, *grads)

    return wrapped
