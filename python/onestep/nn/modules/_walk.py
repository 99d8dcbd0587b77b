"""What a Module does with all of its parts: listing, converting, switching."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterable, Iterator, Optional, Set, Tuple

import onestep
from onestep import _C
from onestep.nn.parameter import is_lazy


def zero_grads(parameters: Iterable[Any], set_to_none: bool) -> None:
    """Drops their gradients, or fills them with 0."""
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if set_to_none:
            parameter.grad = None
            continue
        if parameter.grad.requires_grad:
            parameter.grad = parameter.grad.detach()
        parameter.grad.zero_()


class Walk:
    """The part of Module that walks over children, parameters and buffers."""

    _modules: Dict[str, Any]
    _parameters: Dict[str, Any]
    _buffers: Dict[str, Any]

    def named_modules(self, memo: Optional[Set] = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[Tuple]:
        """(name, module) of this module and all below it; each module once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    def _named(self, store: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[Tuple]:
        seen = set()
        for module_prefix, module in self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]:
            for name, value in getattr(module, store).items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield module_prefix + ("." if module_prefix else "") + name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[Tuple]:
        """(name, parameter), each parameter once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[Tuple]:
        """(name, buffer), each buffer once."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def named_children(self) -> Iterator[Tuple]:
        """(name, child), each child once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def parameters(self, recurse: bool = True) -> Iterator:
        """Each parameter once."""
        return (value for _, value in self.named_parameters(recurse=recurse))

    def buffers(self, recurse: bool = True) -> Iterator:
        """Each buffer once."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def children(self) -> Iterator:
        """Each child once."""
        return (module for _, module in self.named_children())

    def modules(self) -> Iterator:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def get_submodule(self, target: str) -> Any:
        """The module at a dotted path."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Walk):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def _get_tensor(self, target: str, store: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in getattr(module, store):
            raise AttributeError(f"`{name}` is not {what}")
        return getattr(module, store)[name]

    def get_parameter(self, target: str) -> Any:
        """The parameter at a dotted path."""
        return self._get_tensor(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Any:
        """The buffer at a dotted path."""
        return self._get_tensor(target, "_buffers", "a buffer")

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Puts a module at a dotted path."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        setattr(parent, name, module)

    def apply(self, fn: Callable) -> Any:
        """fn(module) of all children, then of this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Any:
        """Switches this module and all below to training, or evaluation."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Says of all parameters whether they get a gradient."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops all gradients, or fills them with 0."""
        zero_grads(self.parameters(), set_to_none)

    def _apply(self, fn: Callable, recurse: bool = True) -> Any:
        """Replaces the elements of parameters, gradients and buffers by fn of them; the Parameter objects stay."""
        for module in self.children() if recurse else ():
            module._apply(fn)
        with onestep.no_grad():
            for parameter in self._parameters.values():
                if parameter is None:
                    continue
                grad = parameter.grad
                changed = fn(parameter.detach())
                if changed.dtype != parameter.dtype or changed.data_ptr() != parameter.data_ptr():
                    parameter.grad = None
                    parameter.data = changed
                    if grad is not None:
                        parameter.grad = fn(grad.detach())
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                buffer.data = fn(buffer)
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """to(device), to(dtype), to(tensor): floating parameters and buffers in another dtype."""
        given = itertools.chain(args, (kwargs.get("device"), kwargs.get("dtype"), kwargs.get("tensor")))
        dtype = None
        for value in given:
            if isinstance(value, onestep.dtype):
                dtype = value
            elif isinstance(value, _C.Tensor):
                dtype = value.dtype
            elif isinstance(value, (str, onestep.device)):
                onestep.empty(0, device=value)  # refuses devices that are not there
        if dtype is None:
            return self
        if not dtype.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Any:
        """to(float32)."""
        return self.to(onestep.float32)

    def double(self) -> Any:
        """to(float64)."""
        return self.to(onestep.float64)

    def half(self) -> Any:
        """to(float16)."""
        return self.to(onestep.float16)

    def bfloat16(self) -> Any:
        """to(bfloat16)."""
        return self.to(onestep.bfloat16)

    def type(self, dst_type: Any) -> Any:
        """All parameters and buffers in another dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """All parameters and buffers as empty_like gives them."""
        return self._apply(_C.empty_like, recurse)

    def cpu(self) -> Any:
        """This module: its tensors are on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Any:
        """Raises: there is only a CPU."""
        raise AssertionError("Torch not compiled with CUDA enabled")

    def share_memory(self) -> Any:
        """This module: threads share memory."""
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Accepted, without effect."""
