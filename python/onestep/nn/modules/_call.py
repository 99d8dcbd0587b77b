"""How a module is called: hooks before and after its forward and around its gradients, its own and those of all modules."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any, Callable, List, Optional, Set, Tuple

from onestep.utils.hooks import RemovableHandle, added

_global_forward_pre_hooks: OrderedDict = OrderedDict()
_global_forward_hooks: OrderedDict = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict = OrderedDict()
_global_forward_hooks_always_called: OrderedDict = OrderedDict()
_global_backward_hooks: OrderedDict = OrderedDict()
_global_backward_pre_hooks: OrderedDict = OrderedDict()
_global_is_full_backward_hook: Optional[bool] = None


def _check_kind(known: Optional[bool], full: bool, where: str) -> bool:
    """Refuses to mix register_backward_hook with register_full_backward_hook."""
    if known is not None and known is not full:
        raise RuntimeError(
            f"Cannot use both regular backward hooks and full backward hooks {where}. Please use only one of them."
        )
    return full


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """hook(module, args) before the forward of every module may return other args; it comes before the module's own."""
    return added(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook: Callable, *, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
    """hook(module, args, output) after the forward of every module, as Module.register_forward_hook."""
    marks = [(_global_forward_hooks_with_kwargs, with_kwargs), (_global_forward_hooks_always_called, always_call)]
    return added(_global_forward_hooks, hook, marks=marks)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """hook(module, grad_input, grad_output) of every module, as Module.register_full_backward_hook."""
    return _add_global_backward_hook(hook, True)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """As register_module_full_backward_hook."""
    return _add_global_backward_hook(hook, False)


def _add_global_backward_hook(hook: Callable, full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    _global_is_full_backward_hook = _check_kind(_global_is_full_backward_hook, full, "as a global Module hook")
    return added(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """hook(module, grad_output) of every module, as Module.register_full_backward_pre_hook."""
    return added(_global_backward_pre_hooks, hook)


CALL_HOOKS = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_backward_hooks",
    "_backward_pre_hooks",
)


class Call:
    """The part of Module that calls forward with the hooks around it."""

    forward: Callable
    _forward_pre_hooks: OrderedDict
    _forward_pre_hooks_with_kwargs: OrderedDict
    _forward_hooks: OrderedDict
    _forward_hooks_with_kwargs: OrderedDict
    _forward_hooks_always_called: OrderedDict
    _backward_hooks: OrderedDict
    _backward_pre_hooks: OrderedDict
    _is_full_backward_hook: Optional[bool] = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
            or _global_backward_hooks
            or _global_backward_pre_hooks
        ):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args: tuple, kwargs: dict) -> Any:
        result, called = None, set()
        try:
            args, kwargs = self._call_pre_hooks(args, kwargs)
            backward = None
            hooks = [*_global_backward_hooks.values(), *self._backward_hooks.values()]
            pre_hooks = [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
            if hooks or pre_hooks:
                from onestep.nn.modules._hooks import BackwardHooks  # which needs autograd, and that needs modules

                backward = BackwardHooks(self, hooks, pre_hooks)
                args = backward.before(args)
            result = self.forward(*args, **kwargs)
            for key, hook in self._all_forward_hooks():
                called.add(key)
                result = self._call_forward_hook(key, hook, args, kwargs, result)
            return backward.after(result) if backward is not None else result
        except Exception:
            self._call_those_always_called(called, args, kwargs, result)
            raise

    def _call_pre_hooks(self, args: tuple, kwargs: dict) -> Tuple[tuple, dict]:
        for key, hook in [*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()]:
            if key in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _all_forward_hooks(self) -> List[Tuple[int, Callable]]:
        return [*_global_forward_hooks.items(), *self._forward_hooks.items()]

    def _call_forward_hook(self, key: int, hook: Callable, args: tuple, kwargs: dict, result: Any) -> Any:
        with_kwargs = key in self._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs
        changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
        return result if changed is None else changed

    def _call_those_always_called(self, called: Set[int], args: tuple, kwargs: dict, result: Any) -> None:
        """After an error: the hooks that are called in any case and were not yet."""
        for key, hook in self._all_forward_hooks():
            own = key in self._forward_hooks_always_called
            if key in called or not (own or key in _global_forward_hooks_always_called):
                continue
            try:
                result = self._call_forward_hook(key, hook, args, kwargs, result)
            except Exception as error:
                warnings.warn(
                    f"{'' if own else 'global '}module forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error}",
                    stacklevel=4,
                )

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """hook(module, args) before forward may return other args; with_kwargs: hook(module, args, kwargs)."""
        return added(self._forward_pre_hooks, hook, prepend, [(self._forward_pre_hooks_with_kwargs, with_kwargs)])

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """hook(module, args, output) after forward may return another output; with_kwargs: hook(module, args, kwargs, output);
        always_call: also where forward, or another hook, raises."""
        marks = [(self._forward_hooks_with_kwargs, with_kwargs), (self._forward_hooks_always_called, always_call)]
        return added(self._forward_hooks, hook, prepend, marks)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_input, grad_output) may return another grad_input."""
        return self._add_backward_hook(hook, True, prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """As register_full_backward_hook, where PyTorch gives the gradients of forward's last op."""
        return self._add_backward_hook(hook, False, False)

    def _add_backward_hook(self, hook: Callable, full: bool, prepend: bool) -> RemovableHandle:
        known = _check_kind(self._is_full_backward_hook, full, "on a single Module")
        object.__setattr__(self, "_is_full_backward_hook", known)
        return added(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_output) may return another grad_output."""
        return added(self._backward_pre_hooks, hook, prepend)
