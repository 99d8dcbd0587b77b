"""Parameters computed from others whenever they are read: register_parametrization."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

import onestep
from onestep import _C
from onestep.nn.modules.container import ModuleDict, ModuleList
from onestep.nn.modules.module import Module
from onestep.nn.parameter import Parameter

Tensor = _C.Tensor
_cache: Optional[Dict[Tuple[int, str], Tensor]] = None


@contextmanager
def cached() -> Iterator[None]:
    """A context in which each parametrized tensor is computed once."""
    global _cache
    before = _cache
    _cache = {} if before is None else before
    try:
        yield
    finally:
        _cache = before


def _register(module: Module, name: str, tensor: Optional[Tensor]) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _inverse_or_same(parametrization: Module, value: Any) -> Any:
    """What the parametrization gives `value` for; `value` itself where it has no right_inverse."""
    try:
        return parametrization.right_inverse(value) if hasattr(parametrization, "right_inverse") else value
    except NotImplementedError:
        return value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, the first one first, and what they are computed from: `original`, or `original0`,
    `original1`... where the first one takes several tensors."""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with onestep.no_grad():
            new: Any = original
            for module in reversed(list(self)):
                new = _inverse_or_same(module, new)
        self.is_tensor = isinstance(new, Tensor)
        if self.is_tensor:
            if new.dtype != original.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            if new is not original:
                original.data = new.detach()
            _register(self, "original", original)
        elif isinstance(new, Sequence):
            self.ntensors = len(new)
            for i, part in enumerate(new):
                held = Parameter(part.detach(), original.requires_grad) if isinstance(original, Parameter) else part
                _register(self, f"original{i}", held)
        else:
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        if not unsafe:
            _check_kept("unparametrized", original, "parametrized", self(), "`unsafe`")

    def _originals(self) -> list:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Sets the originals so that forward() gives `value`."""
        with onestep.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else list(value)
            for original, new in zip(self._originals(), values):
                if original.dtype != new.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {new.dtype} while `original` has dtype "
                        f"{original.dtype}"
                    )
                original.data = new.detach().clone()

    def forward(self) -> Tensor:
        first, *rest = list(self)
        x = first(*self._originals())
        for module in rest:
            x = module(x)
        return x


def _check_kept(before_name: str, before: Tensor, after_name: str, after: Any, flag: str) -> None:
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        one, two = getattr(before, what), getattr(after, what)
        if one != two:
            between = "." if "." in before_name else " "
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless {flag} flag is enabled.\n"
                f"{before_name}{between}{what}: {one}\n{after_name}{between}{what}: {two}"
            )


def _property(name: str) -> property:
    def get(self: Any) -> Tensor:
        if _cache is None:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    return property(get, lambda self, value: self.parametrizations[name].right_inverse(value))


def _no_state(module: Module) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(): their class is made while the program runs."
    )


def _deepcopy(module: Module, memo: dict) -> Module:
    """As copy.deepcopy without __getstate__."""
    new = module.__new__(type(module))
    memo[id(module)] = new
    new.__dict__.update(copy.deepcopy(module.__dict__, memo))
    return new


@lru_cache(maxsize=None)
def _class(base: type, names: Tuple[str, ...]) -> type:
    """The class of modules of class `base` with these tensors parametrized."""
    inside: Dict[str, Any] = {name: _property(name) for name in names}
    if not hasattr(base, "__deepcopy__"):
        inside["__deepcopy__"] = _deepcopy
    inside.update(__module__=__name__, _parametrized=base, __getstate__=_no_state)
    return type("Parametrized" + base.__name__, (base,), inside)


def _update_class(module: Module) -> None:
    base = type_before_parametrizations(module)
    names = tuple(module.parametrizations) if "parametrizations" in module._modules else ()
    module.__class__ = _class(base, names) if names else base  # type: ignore[assignment]


def type_before_parametrizations(module: Module) -> type:
    """The module's class without parametrizations."""
    return getattr(type(module), "_parametrized", type(module))


def is_parametrized(module: Module, tensor_name: Optional[str] = None) -> bool:
    """Whether this tensor of the module, or any, is parametrized."""
    held = module._modules.get("parametrizations")
    if not isinstance(held, ModuleDict):
        return False
    return len(held) > 0 if tensor_name is None else tensor_name in held


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """module.tensor_name is parametrization(what it was) from now on; a second one takes what the first one gives. `unsafe`:
    the dtype and shape may change."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before, full = getattr(module, tensor_name), f"module.{tensor_name}"
            _check_kept(full, before, f"parametrization({full})", parametrization(before), "the `unsafe`")
        held = module.parametrizations[tensor_name]
        held.append(parametrization)
        held.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        found = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = found
        _update_class(module)
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes the tensor a parameter or buffer again: with the value it has, or else the original one."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    held = module.parametrizations[tensor_name]
    if not (held.is_tensor or leave_parametrized):
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    value = getattr(module, tensor_name)
    if held.is_tensor:
        tensor = held.original
        if leave_parametrized:
            tensor.data = value.detach()
    else:
        tensor = Parameter(value) if value.requires_grad else value
    del module.parametrizations[tensor_name]
    if len(module.parametrizations) == 0:
        del module.parametrizations
    _update_class(module)
    _register(module, tensor_name, tensor)
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: Optional[str] = None
) -> Module:
    """Gives to_module the parametrizations of from_module, and their originals."""
    for name in [tensor_name] if tensor_name is not None else list(from_module.parametrizations):
        held = from_module.parametrizations[name]
        if not is_parametrized(to_module, name):
            if not hasattr(to_module, name):
                _register(to_module, name, held._originals()[0])
            for parametrization in held:
                register_parametrization(to_module, name, parametrization, unsafe=True)
        for key, original in list(held._parameters.items()) + list(held._buffers.items()):
            setattr(to_module.parametrizations[name], key, original)
    return to_module
