"""The meta path finder that answers `import torch...` with onestep's modules."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
from types import ModuleType
from typing import Any, Iterable

import onestep
from onestep._missing import Missing, MissingAttribute, MissingModule, module_getattr, sentence, torch_names, unavailable

VERSION = "2.13.0+onestep"  # whose names these are
STAND_INS = "onestep.as_torch.stand_ins"
FLAT = ("torch.nn.modules", "torch.utils.data", "torch.optim")  # their files are one namespace here


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, AttributeError, ValueError):
        return False


def source_of(name: str) -> str | None:
    """The onestep module that stands for the PyTorch module `name`; None where there is none."""
    inner = name.removeprefix("torch.")
    stand_in = f"{STAND_INS}.{inner.replace('.', '_')}"
    candidates = [f"onestep.{inner}", stand_in]
    parent, _, last = name.rpartition(".")
    if parent in FLAT and last.islower():
        candidates.append("onestep.nn" if parent == "torch.nn.modules" else f"onestep.{parent.removeprefix('torch.')}")
    return next((c for c in candidates if _has(c)), None)


def known_module(name: str) -> bool:
    """Whether PyTorch has a module of this name, or may have one inside a package that is not here at all."""
    top = ".".join(name.split(".")[:2])
    return name in torch_names() or (top in torch_names() and (source_of(top) or STAND_INS).startswith(STAND_INS))


def _backend(name: str) -> bool:
    """Whether it is one of onestep.backends' objects, which PyTorch has as modules."""
    parent, _, last = name.rpartition(".")
    return parent == "torch.backends" and last in vars(onestep.backends)


def lookup(name: str) -> Any:
    """What the dotted torch name is here; raises AttributeError (Missing) or ImportError where it is nothing."""
    value: Any = sys.modules["torch"]
    path = "torch"
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        module = isinstance(value, ModuleType) and part not in vars(value)  # torch.Tensor has names, too
        if module and path not in sys.modules and (source_of(path) or path in torch_names()):
            importlib.import_module(path)
        value = sys.modules.get(path) or getattr(value, part)
    return value


def _fallback(name: str) -> Any:
    """The module-level `__getattr__` of the module that stands for `name`: its submodules, then what is missing."""
    missing = module_getattr(name)
    parent = name.rpartition(".")[0]
    flat = None if parent not in FLAT else "onestep.nn" if parent == "torch.nn.modules" else source_of(parent)

    def get(attribute: str) -> Any:
        full = f"{name}.{attribute}"
        if attribute.startswith("__"):
            return missing(attribute)
        if flat and attribute in vars(importlib.import_module(flat)):
            return getattr(importlib.import_module(flat), attribute)
        if source_of(full) or full in torch_names():
            return importlib.import_module(full)
        return missing(attribute)

    return get


def _torch_module() -> ModuleType:
    """The module `torch`: onestep's names (copied, so that a look-up costs what it costs in PyTorch) and a version."""
    module = ModuleType("torch", onestep.__doc__)
    module.__dict__.update({k: v for k, v in vars(onestep).items() if not k.startswith("__") and not isinstance(v, ModuleType)})
    fallback = _fallback("torch")

    def get(name: str) -> Any:
        if not name.startswith("__") and not source_of(f"torch.{name}"):
            try:
                return getattr(onestep, name)
            except AttributeError:
                pass
        return fallback(name)

    module.__dict__.update(__path__=[], __version__=VERSION, __getattr__=get)
    return module


def _unavailable_module(name: str) -> ModuleType:
    """A module that can be imported; what it has raises when it is used."""
    module = ModuleType(name)

    def get(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(f"module '{name}' has no attribute '{attribute}'")
        value = unavailable(f"{name}.{attribute}")
        setattr(module, attribute, value)
        return value

    module.__dict__.update(__path__=[], __getattr__=get)
    return module


def _module(name: str) -> Any:
    if name == "torch":
        return _torch_module()
    if _backend(name):
        return getattr(onestep.backends, name.rpartition(".")[2])
    source = source_of(name)
    if source is None:
        return _unavailable_module(name)
    module = importlib.import_module(source)
    module.__dict__.setdefault("__path__", [])  # what is below it is found here
    module.__dict__.setdefault("__getattr__", _fallback(name))
    return module


class _Version(importlib.metadata.Distribution):
    """What importlib.metadata says about torch."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return path


class Finder(importlib.abc.Loader):
    """Answers for torch and what is below it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name == "torch" or name.startswith("torch."):
            parent, _, last = name.rpartition(".")
            if name == "torch" or source_of(name) or _backend(name) or known_module(name):
                return importlib.machinery.ModuleSpec(name, self, is_package=True)
            if last in torch_names().get(parent, ()):
                raise MissingModule(sentence(name))
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        if name.startswith("onestep."):  # `from torch.nn import X` asks for onestep.nn.X, the module's own name
            parent, _, last = name.replace("onestep", "torch", 1).rpartition(".")
            if last in torch_names().get(parent, ()) and importlib.machinery.PathFinder.find_spec(name, path) is None:
                raise MissingModule(sentence(f"{parent}.{last}"))
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        made = _module(module.__name__)
        if getattr(made, "__spec__", None) is None:  # importlib.util.find_spec asks for it
            made.__spec__ = module.__spec__
        sys.modules[module.__name__] = made

    def find_distributions(self, context: Any = importlib.metadata.DistributionFinder.Context()) -> Iterable[_Version]:
        return [_Version()] if context.name == "torch" else []


def activate() -> None:
    """Puts the finder first and completes Tensor with what raises for the methods that are missing. Refuses after `import torch`."""
    if any(isinstance(f, Finder) for f in sys.meta_path):
        return
    if "torch" in sys.modules:
        raise RuntimeError("as_torch: torch is imported already: import onestep.as_torch before it")
    sys.meta_path.insert(0, Finder())
    for name in torch_names()["torch.Tensor"]:
        if not hasattr(onestep.Tensor, name):
            setattr(onestep.Tensor, name, MissingAttribute(f"torch.Tensor.{name}"))
    importlib.import_module("torch")
    for name in ("nn", "optim", "utils.data", "amp"):
        importlib.import_module(f"torch.{name}")
    for name in [n.removeprefix("onestep.") for n in sys.modules if n.startswith("onestep.")]:
        if not name.startswith(("as_torch", "_")):
            parent, _, last = f"onestep.{name}".rpartition(".")
            before = vars(sys.modules[parent]).get(last)
            importlib.import_module(f"torch.{name}")
            if callable(before):  # autograd.gradcheck is a function, whose module would take its place
                setattr(sys.modules[parent], last, before)


__all__ = ["Finder", "Missing", "MissingModule", "activate", "lookup"]
