"""Hooks around state_dict and load_state_dict, and what else a module puts into one."""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any, Callable

from onestep.utils.hooks import RemovableHandle, added


def _without_result(hook: Callable, *args: Any) -> None:
    if hook(*args) is not None:
        raise RuntimeError("state_dict post-hook must return None")


class StateHooks:
    """The part of Module that registers them."""

    def get_extra_state(self) -> Any:
        """What a subclass puts into its state_dict as `_extra_state`; set_extra_state takes it back."""
        raise RuntimeError("Module.get_extra_state: a subclass that has an extra state must define it")

    def set_extra_state(self, state: Any) -> None:
        """Takes back what get_extra_state gave."""
        raise RuntimeError("Module.set_extra_state: a subclass that has an extra state must define it")

    def _defines(self, name: str) -> bool:
        """Whether a subclass defines get_extra_state or set_extra_state."""
        return getattr(type(self), name) is not getattr(StateHooks, name)

    _state_dict_pre_hooks: OrderedDict
    _state_dict_hooks: OrderedDict
    _load_state_dict_pre_hooks: OrderedDict
    _load_state_dict_post_hooks: OrderedDict

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """hook(module, prefix, keep_vars) before this module's part of state_dict."""
        return added(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """hook(module, state_dict, prefix, local_metadata) after this module's part of state_dict, with those below it."""
        return added(self._state_dict_hooks, functools.partial(_without_result, hook))

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        """As register_state_dict_post_hook; the hook may return another state_dict."""
        return added(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs) before this
        module takes its part of a state_dict."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> RemovableHandle:
        return added(self._load_state_dict_pre_hooks, functools.partial(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """hook(module, incompatible_keys) after load_state_dict."""
        return added(self._load_state_dict_post_hooks, hook)
