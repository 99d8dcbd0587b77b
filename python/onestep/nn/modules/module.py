"""Module: the base of all layers and models."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

import onestep
from onestep import _C
from onestep.nn.modules._call import (  # noqa: F401
    CALL_HOOKS,
    Call,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from onestep.nn.modules._names import typename
from onestep.nn.modules._state_hooks import StateHooks
from onestep.nn.modules._walk import Walk
from onestep.nn.parameter import Buffer, Parameter
from onestep.utils.hooks import RemovableHandle, added

_Tensor = _C.Tensor


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


_HOOKS = (
    *CALL_HOOKS,
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


_registration_hooks: Dict[str, OrderedDict] = {kind: OrderedDict() for kind in ("parameter", "buffer", "module")}


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """hook(module, name, parameter) whenever a module gets a parameter may return another one."""
    return added(_registration_hooks["parameter"], hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """hook(module, name, buffer) whenever a module gets a buffer may return another one."""
    return added(_registration_hooks["buffer"], hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """hook(module, name, child) whenever a module gets a child may return another one."""
    return added(_registration_hooks["module"], hook)


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


class Module(Call, StateHooks, Walk):
    """A layer or model: holds parameters, buffers and child modules, and computes `forward`."""

    _version = 1
    training: bool
    dump_patches = False

    def __init__(self) -> None:
        set_plain = super().__setattr__
        set_plain("training", True)
        set_plain("_parameters", {})
        set_plain("_buffers", {})
        set_plain("_non_persistent_buffers_set", set())
        for name in _HOOKS:
            set_plain(name, OrderedDict())
        set_plain("_modules", {})

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # ---- what it holds ----------------------------------------------------------------------------------------------
    def _check_name(self, kind: str, name: Any, own: dict) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in own:
            raise KeyError(f"attribute '{name}' already exists")

    def _registered(self, kind: str, name: str, value: Any) -> Any:
        """The value, or what the hooks on registrations make of it."""
        for hook in list(_registration_hooks[kind].values()):
            changed = hook(self, name, value)
            value = value if changed is None else changed
        return value

    def register_parameter(self, name: str, param: Optional[Parameter]) -> None:
        """Adds a parameter, or None as the place of one that is left out."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        self._parameters[name] = param if param is None else self._registered("parameter", name, param)

    def register_buffer(self, name: str, tensor: Optional[_Tensor], persistent: bool = True) -> None:
        """Adds a tensor that is no parameter; with `persistent` it is part of the state_dict."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, _Tensor):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        self._buffers[name] = self._registered("buffer", name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Optional["Module"]) -> None:
        """Adds a child."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = self._registered("module", name, module)

    register_module = add_module

    def __getattr__(self, name: str) -> Any:
        here = self.__dict__
        for store in ("_parameters", "_buffers", "_modules"):
            held = here.get(store)
            if held is not None and name in held:
                return held[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        here = self.__dict__
        kind = Parameter if isinstance(value, Parameter) else Module if isinstance(value, Module) else None
        if kind is not None and "_parameters" not in here:
            raise AttributeError(
                f"cannot assign {'parameters' if kind is Parameter else 'module'} before Module.__init__() call"
            )
        if kind is None and isinstance(value, _Tensor) and isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        elif kind is Parameter or (kind is Module and name not in here["_parameters"]):
            own = here["_parameters" if kind is Parameter else "_modules"]
            for store in (here, here["_parameters"], here["_buffers"], here["_modules"]):
                if store is not own:  # in its own store it keeps its place
                    store.pop(name, None)
            if kind is Parameter:
                self.register_parameter(name, value)
            else:
                own[name] = self._registered("module", name, value)
        elif name in here.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self._parameters[name] = None
        elif name in here.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            self._modules[name] = self._registered("module", name, None)
        elif name in here.get("_buffers", ()):
            if value is not None and not isinstance(value, _Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
                )
            self._buffers[name] = self._registered("buffer", name, value)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for held in (self._parameters, self._buffers, self._modules):
            if name in held:
                del held[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list:
        names = set(dir(type(self))) | set(self.__dict__) | set(self._parameters) | set(self._buffers) | set(self._modules)
        return sorted(name for name in names if not name[:1].isdigit())

    # ---- states -----------------------------------------------------------------------------------------------------
    def state_dict(self, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> "OrderedDict[str, _Tensor]":
        """Names -> parameters and persistent buffers, detached unless keep_vars."""
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in list(self._state_dict_hooks.values()):
            changed = hook(self, destination, prefix, metadata)
            destination = destination if changed is None else changed
        return destination

    def _own_state(self) -> Iterator[tuple]:
        for name, value in self._parameters.items():
            if value is not None:
                yield name, value
        for name, value in self._buffers.items():
            if value is not None and name not in self._non_persistent_buffers_set:
                yield name, value

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._own_state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if self._defines("get_extra_state"):
            destination[prefix + "_extra_state"] = self.get_extra_state()

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copies (or with `assign` takes over) the tensors of state_dict; strict: the names must be exactly those here."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list = []
        unexpected: list = []
        errors: list = []
        metadata = getattr(state_dict, "_metadata", {})
        Module._load(self, OrderedDict(state_dict), "", metadata, assign, missing, unexpected, errors)
        known = _IncompatibleKeys(missing, unexpected)
        if strict:
            quoted = [", ".join(f'"{key}"' for key in keys) for keys in (missing, unexpected)]
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {quoted[1]}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {quoted[0]}. ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return known

    def _load(
        self, state: dict, prefix: str, metadata: dict, assign: bool, missing: list, unexpected: list, errors: list
    ) -> None:
        own = {**metadata.get(prefix[:-1], {}), "assign_to_params_buffers": assign}
        self._load_from_state_dict(state, prefix, own, True, missing, unexpected, errors)
        for name, child in self._modules.items():
            if child is not None:
                below = prefix + name + "."
                part = {key: value for key, value in state.items() if key.startswith(below)}
                Module._load(child, part, below, metadata, assign, missing, unexpected, errors)
        for hook in list(self._load_state_dict_post_hooks.values()):
            if hook(self, _IncompatibleKeys(missing, unexpected)) is not None:
                raise AssertionError("Hooks registered with register_load_state_dict_post_hook are not expected to return new values")

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list,
        unexpected_keys: list,
        error_msgs: list,
    ) -> None:
        for hook in list(self._load_state_dict_pre_hooks.values()):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = dict(self._own_state())
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, param in own.items():
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            given = state_dict[key]
            if isinstance(given, _Tensor) and (given.dim(), param.dim()) == (1, 0):  # as files of PyTorch 0.3 have numbers
                given = given[0]
            if not isinstance(given, _Tensor):
                error_msgs.append(
                    f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                    f"checkpoint but received {type(given)}"
                )
            elif given.shape != param.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
                    f"the shape in current model is {param.shape}."
                )
            elif assign:
                if isinstance(given, Parameter):
                    given.requires_grad_(param.requires_grad)
                setattr(self, name, Parameter(given, param.requires_grad) if type(param) is Parameter is not type(given) else given)
            else:
                with onestep.no_grad():
                    param.copy_(given)
        extra = self._defines("set_extra_state")
        if extra and prefix + "_extra_state" in state_dict:
            self.set_extra_state(state_dict[prefix + "_extra_state"])
        elif extra:
            missing_keys.append(prefix + "_extra_state")
        for key in state_dict:
            if key.startswith(prefix) and not (extra and key == prefix + "_extra_state"):
                first, *rest = key[len(prefix) :].split(".", 1)
                if first not in (self._modules if rest else own):
                    unexpected_keys.append(key)

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:  # of a version that had fewer of them, or of PyTorch
            self.__dict__.setdefault(name, OrderedDict())

    # ---- text -------------------------------------------------------------------------------------------------------
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What the layer's text has in its brackets."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(child))}" for name, child in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"
