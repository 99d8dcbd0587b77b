"""What PyTorch has and onestep has not: errors that name it and, where there is one, what to use instead."""
from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Callable

USE_INSTEAD = {
    "torch.jit.trace_module": "the module itself",
    "torch.Tensor.to_sparse_csr": "to_sparse()",
    "torch.optim.SparseAdam": "torch.optim.Adam",
    "torch.nn.utils.parametrizations.orthogonal": "torch.nn.init.orthogonal_",
    "torch.autograd.profiler": "`onestep train --profile`",
    "torch.distributed": "`onestep train`, which trains on several processes",
    "torch.profiler.profile": "`onestep train --profile`",
    "torch.quantization": "bfloat16 weights",
}


class Missing(NotImplementedError, AttributeError):
    """A name that PyTorch has and onestep has not; also an AttributeError, so that `hasattr` answers False."""


class MissingModule(NotImplementedError, ImportError):
    """A module that PyTorch has and onestep has not; also an ImportError, so that programs can fall back."""


class MissingDType:
    """A dtype of PyTorch that tensors cannot have here: programs name it in tables, and what makes a tensor refuses it."""

    def __init__(self, name: str, itemsize: int, is_floating_point: bool = False) -> None:
        self._name, self.itemsize = name, itemsize
        self.is_floating_point, self.is_complex, self.is_signed = is_floating_point, False, not name.startswith("u")

    def __repr__(self) -> str:
        return f"torch.{self._name}"


_DTYPES = {
    **{f"{sign}int{8 * size}": MissingDType(f"{sign}int{8 * size}", size) for sign in ("", "u") for size in (1, 2, 4, 8)},
    **{name: MissingDType(name, 1, True) for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")},
}
_DTYPES["short"] = _DTYPES["int16"]


@lru_cache(maxsize=None)
def torch_names() -> dict[str, frozenset[str]]:
    """The public names of every module of PyTorch (and of torch.Tensor) that as_torch/names.txt lists."""
    lines = Path(__file__).with_name("as_torch").joinpath("names.txt").read_text().splitlines()
    pairs = (line.split(":") for line in lines if not line.startswith("#"))
    return {module: frozenset(names.split()) for module, names in pairs}


def sentence(name: str) -> str:
    """What an error says about the missing `name`, such as "torch.jit.script"."""
    parts = name.split(".")
    hints = (USE_INSTEAD.get(".".join(parts[:n])) for n in range(len(parts), 1, -1))
    hint = next((h for h in hints if h), None)
    return f"{name}: not in onestep" + (f" (use {hint})" if hint else "")


def module_getattr(module: str) -> Callable[[str], Any]:
    """A module-level `__getattr__` for the onestep module that stands for the PyTorch module `module`."""

    def missing(name: str) -> Any:
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        if name in torch_names().get(module, ()) or f"{module}.{name}" in torch_names():
            raise Missing(sentence(f"{module}.{name}"))
        raise AttributeError(f"module '{module}' has no attribute '{name}'")

    return missing


class MissingAttribute:
    """Stands in a class for an attribute that PyTorch's class has."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        raise Missing(sentence(self.name))


class _UnavailableType(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Missing(sentence(f"{cls.torch_name}.{name}"))

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(sentence(cls.torch_name))


def unavailable(name: str) -> type:
    """A class that can be imported and asked for in isinstance, and raises when it is called."""
    return _UnavailableType(name.rsplit(".", 1)[-1], (), {"torch_name": name, "__module__": name.rsplit(".", 1)[0]})


def unavailable_names(module: str) -> Callable[[str], type]:
    """A module-level `__getattr__` that answers every name with what raises when it is called."""

    def missing(name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return unavailable(f"{module}.{name}")

    return missing
