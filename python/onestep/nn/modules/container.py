"""Modules and parameters in lists and dicts."""

from __future__ import annotations

import operator
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional

from onestep import _C
from onestep.nn.modules._names import typename
from onestep.nn.modules.module import Module, _indented
from onestep.nn.parameter import Parameter


class _Numbered(Module):
    """Children under the names "0", "1" ..."""

    def _key(self, index: Any) -> str:
        size = len(self)
        index = operator.index(index)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range")
        return str(index % size)

    def _names(self, index: slice) -> list:
        return list(self._modules)[index]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __delitem__(self, index: Any) -> None:
        names = self._names(index) if isinstance(index, slice) else [self._name_at(index)]
        for name in names:
            del self._modules[name]
        left = list(self._modules.values())
        self._modules.clear()
        self._modules.update({str(i): module for i, module in enumerate(left)})

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[int(self._key(index))]

    def append(self, module: Module) -> Any:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Puts a module before `index`."""
        all_modules = list(self._modules.values())
        all_modules.insert(index, module)
        self._modules.clear()
        for i, one in enumerate(all_modules):
            self.add_module(str(i), one)
        return self

    def pop(self, index: Any = -1) -> Module:
        """Takes a module out."""
        module = self[index]  # type: ignore[index]
        del self[index]
        return module


def _positive(times: Any) -> int:
    if not isinstance(times, int):
        raise TypeError(f"unsupported operand type(s) for *: Sequential and {type(times).__name__}")
    if times <= 0:
        raise ValueError(f"Non-positive multiplication factor {times} for Sequential")
    return times


class Sequential(_Numbered):
    """Applies its modules one after another: Sequential(a, b) or Sequential(OrderedDict(first=a, second=b))."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)({name: self._modules[name] for name in self._names(index)})
        return self._modules[self._name_at(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __add__(self, other: "Sequential") -> "Sequential":
        return Sequential(*self, *other)

    def __mul__(self, times: int) -> "Sequential":
        """The same modules so many times, one row of them after another."""
        return Sequential().extend(list(self) * _positive(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> "Sequential":
        return self.extend(list(self) * (_positive(times) - 1))


class ModuleList(_Numbered):
    """A list of modules, all of them children."""

    def __init__(self, modules: Optional[Iterable[Module]] = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self._modules[name] for name in self._names(index)])
        return self._modules[self._key(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __iadd__(self, modules: Iterable[Module]) -> "ModuleList":
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> "ModuleList":
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Equal neighbours in one line: (0-3): 4 x Linear(...)."""
        if not self._modules:
            return self._get_name() + "()"
        groups: list = []
        for i, module in enumerate(self):
            text = repr(module)
            if groups and groups[-1][2] == text:
                groups[-1][1] = i
            else:
                groups.append([i, i, text])
        lines = [
            f"({first}): {_indented(text)}" if first == last else f"({first}-{last}): {last - first + 1} x {_indented(text)}"
            for first, last, text in groups
        ]
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules by name, all of them children."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Takes one out."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """(name, module)."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds those of a mapping or of pairs (name, module)."""
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self[name] = module


def _line(name: Any, value: Any, dtype_of: Callable[[_C.Tensor], Any]) -> str:
    if isinstance(value, _C.Tensor):
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        return f"  ({name}): {kind} containing: [{dtype_of(value)} of size {'x'.join(map(str, value.shape))}]"
    return f"  ({name}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """A list of parameters; tensors that are put into it become parameters."""

    def __init__(self, values: Optional[Iterable[Any]] = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._size))

    def _key(self, index: Any) -> str:
        index = operator.index(index)
        if not -self._size <= index < self._size:
            raise IndexError(f"index {index} is out of range")
        return str(index % self._size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(self._size))])
        return getattr(self, self._key(index))

    def __setitem__(self, index: int, value: Any) -> None:
        if isinstance(value, _C.Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, self._key(index), value)

    def append(self, value: Any) -> "ParameterList":
        """Adds one at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> "ParameterList":
        """Adds many at the end."""
        for value in values:
            self.append(value)
        return self

    __iadd__ = extend

    def extra_repr(self) -> str:
        return "\n".join(_line(i, value, lambda p: p.dtype) for i, value in enumerate(self))


class ParameterDict(Module):
    """Parameters by name; tensors that are put into it become parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        if isinstance(value, _C.Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, key, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def values(self) -> Any:
        """The parameters."""
        return (self[key] for key in self._keys)

    def items(self) -> Any:
        """(name, parameter)."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """That of a name, or the default."""
        return self[key] if key in self else default

    def pop(self, key: str) -> Any:
        """Takes one out."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> Any:
        """Takes the last one out: (name, parameter)."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """That of a name, which gets the default where it is not there."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Takes all out."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> "ParameterDict":
        """Another one with the same parameters."""
        return ParameterDict(self)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __or__(self, other: Any) -> "ParameterDict":
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: Any) -> "ParameterDict":
        return ParameterDict(other) | self

    def __ior__(self, other: Any) -> "ParameterDict":
        self.update(other)
        return self

    def fromkeys(self, keys: Any, default: Any = None) -> "ParameterDict":
        """One that has the default for each of the names."""
        return ParameterDict({key: default for key in keys})

    def update(self, parameters: Any) -> None:
        """Adds those of a mapping or of pairs (name, parameter); of a plain dict in the order of the names, as PyTorch does."""
        pairs = list(parameters.items() if hasattr(parameters, "items") else parameters)
        for name, value in sorted(pairs, key=lambda pair: pair[0]) if type(parameters) is dict else pairs:
            self[name] = value

    def extra_repr(self) -> str:
        return "\n".join(_line(key, value, lambda p: typename(p.detach())) for key, value in self.items())
