"""Reading pickles of tensors and plain containers: names that are not known are refused, unless the caller trusts the file."""

from __future__ import annotations

import contextlib
import io
import pickle
import types
from collections import Counter, OrderedDict
from typing import Any, Callable, Dict, Iterator, List

import onestep
from onestep import _C
from onestep._pickle_writer import STORAGES
from onestep.nn.parameter import Parameter

_safe: List[Any] = []


def dtype_named(name: str) -> Any:
    return getattr(onestep, name)


def tensor_from_bytes(data: Any, dtype: Any, shape: Any) -> _C.Tensor:
    """A tensor over the memory of uint8, or over a copy of bytes."""
    memory = data if isinstance(data, _C.Tensor) else bytearray(data)
    return _C.frombuffer(memory, dtype=dtype).reshape(shape) if len(data) > 0 else _C.empty(shape, dtype=dtype)


def add_safe_globals(safe_globals: List[Any]) -> None:
    """Classes and functions that load() may use."""
    _safe.extend(safe_globals)


@contextlib.contextmanager
def safe_globals(some: List[Any]) -> Iterator[None]:
    """add_safe_globals within a block."""
    before = list(_safe)
    add_safe_globals(some)
    try:
        yield
    finally:
        _safe[:] = before


def _refuse(module: str, name: str) -> Any:
    raise pickle.UnpicklingError(
        f"Weights only load failed. Unsupported global: GLOBAL {module}.{name} was not an allowed "
        "global by default. Save a state_dict(), or use weights_only=False for a file that you trust."
    )


class _StorageType:
    def __init__(self, dtype: str) -> None:
        self.dtype = dtype_named(dtype)


def _rebuild_tensor_v2(
    storage: _C.Tensor, offset: int, size: Any, stride: Any, requires_grad: bool, hooks: Any, metadata: Any = None
) -> _C.Tensor:
    last = offset + sum((n - 1) * step for n, step in zip(size, stride)) if 0 not in size else -1
    if offset < 0 or min(size, default=0) < 0 or min(stride, default=0) < 0 or last >= len(storage):
        raise pickle.UnpicklingError(
            f"load: a tensor of sizes {tuple(size)}, strides {tuple(stride)}, offset {offset} lies "
            f"outside its storage of {len(storage)} elements"
        )
    if storage.dim() == 2:  # of complex numbers
        pairs = storage.as_strided((*size, 2), (*(2 * step for step in stride), 1), 2 * offset)
        return onestep.view_as_complex(pairs.detach()).requires_grad_(bool(requires_grad))
    return storage.as_strided(tuple(size), tuple(stride), offset).detach().requires_grad_(bool(requires_grad))


def _rebuild_parameter(data: _C.Tensor, requires_grad: bool, hooks: Any) -> Parameter:
    return Parameter(data, bool(requires_grad))


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1", "utf-8"):
        raise pickle.UnpicklingError(f"load: the encoding {encoding!r}")
    return text.encode(encoding)


def _check_depth(value: Any, most: int = 50) -> None:
    if isinstance(value, tuple):
        if most == 0:
            raise pickle.UnpicklingError("load: tuples are nested too deep")
        for part in value:
            _check_depth(part, most - 1)


_BASIC: Dict[tuple, Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "Counter"): Counter,
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,
    ("_codecs", "encode"): _encode,
}


def _named_safe(module: str, name: str) -> Any:
    """The class or function of add_safe_globals() with this name."""
    for one in _safe:
        if (getattr(one, "__module__", None), getattr(one, "__qualname__", None)) == (module, name):
            return one
    return _refuse(module, name)


class Reader(pickle._Unpickler):  # type: ignore[name-defined]
    """Reads a data.pkl in which only these names may occur; all are functions and types of ours without side effects."""

    dispatch = dict(pickle._Unpickler.dispatch)  # type: ignore[attr-defined]

    def __init__(self, file: Any, content: Callable[[str, int], Any]) -> None:
        """content(key, bytes) gives the bytes of a storage, or a tensor of them."""
        super().__init__(file)
        self._content = content
        self._storages: Dict[str, _C.Tensor] = {}

    def find_class(self, module: str, name: str) -> Any:
        known = {
            **_BASIC,
            ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor_v2,
            ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
            ("torch", "Size"): onestep.Size,
            ("torch", "device"): onestep.device,
        }
        if (module, name) in known:
            return known[module, name]
        if module == "torch":
            for dtype, storage in STORAGES.items():
                if name == storage:
                    return _StorageType(dtype)
                if name == dtype:
                    return dtype_named(dtype)
        return self._other(module, name)

    def _other(self, module: str, name: str) -> Any:
        return _named_safe(module, name)

    def persistent_load(self, saved: Any) -> _C.Tensor:
        kind, storage, key, _, numel = saved[:5]
        if kind != "storage" or not isinstance(storage, _StorageType):
            raise pickle.UnpicklingError(f"load: a persistent id of kind {kind!r}")
        if key not in self._storages:
            data = self._content(key, numel * storage.dtype.itemsize)
            if len(data) != numel * storage.dtype.itemsize:
                raise pickle.UnpicklingError(
                    f"load: storage {key} has {len(data)} bytes, not {numel} elements of {storage.dtype}"
                )
            dtype = storage.dtype
            shape, dtype = ((numel, 2), dtype.to_real()) if dtype.is_complex else ((numel,), dtype)
            self._storages[key] = tensor_from_bytes(data, dtype, shape)
        return self._storages[key]

    def fill(self, key: str, read: Callable[[int], bytes]) -> None:
        """Writes what read(bytes) gives into a storage that is there, and so into its tensors."""
        storage = self._storages[key]
        data = read(storage.nbytes)
        if len(data) != storage.nbytes:
            raise pickle.UnpicklingError(f"load: storage {key} has {len(data)} bytes, not {storage.nbytes}")
        storage.copy_(tensor_from_bytes(data, storage.dtype, storage.shape))

    stack: list

    def load_build(self) -> None:
        """Attributes, which only an OrderedDict gets (its _metadata): set on anything else they could change a type."""
        state = self.stack.pop()
        if type(self.stack[-1]) is not OrderedDict or not isinstance(state, dict):
            raise pickle.UnpicklingError(f"load: attributes of a {type(self.stack[-1]).__name__}")
        self.stack[-1].__dict__.update(state)

    dispatch[pickle.BUILD[0]] = load_build  # type: ignore[assignment]

    def load_bytearray8(self) -> None:
        """Takes memory of the size that the file claims before it reads it; torch.save writes none."""
        raise pickle.UnpicklingError("load: a bytearray")

    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8  # type: ignore[assignment]


def _shallow(load_tuple: Any) -> Any:
    """Python hashes nested tuples, as keys, on the C stack, which a small file could exhaust."""

    def load(self: Any) -> None:
        load_tuple(self)
        _check_depth(self.stack[-1])

    return load


for _code in (pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3):
    Reader.dispatch[_code[0]] = _shallow(Reader.dispatch[_code[0]])


class TrustingReader(Reader):
    """Reads any object of a file that the caller trusts; PyTorch's classes are ours."""

    dispatch = dict(pickle._Unpickler.dispatch)  # type: ignore[attr-defined]

    def _other(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "torch":
            module = "onestep" + module[len("torch") :]
        return pickle._Unpickler.find_class(self, module, name)  # type: ignore[attr-defined]

    def load_build(self) -> None:
        pickle._Unpickler.load_build(self)  # type: ignore[attr-defined]

    dispatch[pickle.BUILD[0]] = load_build  # type: ignore[assignment]


class ObjectReader(pickle._Unpickler):  # type: ignore[name-defined]
    """Reads an object that save() pickled: any class where the caller trusts the file, else those of add_safe_globals()."""

    dispatch = dict(pickle._Unpickler.dispatch)  # type: ignore[attr-defined]

    def __init__(self, data: bytes, trusted: bool) -> None:
        super().__init__(io.BytesIO(data))
        self._trusted = trusted

    def find_class(self, module: str, name: str) -> Any:
        if self._trusted:
            return super().find_class(module, name)
        if (module, name) in {("onestep._tensor", "_rebuild"), ("onestep.nn.parameter", "Parameter"), ("onestep", "Tensor")}:
            return super().find_class(module, name)
        if module == "onestep._C" and name in STORAGES:
            return dtype_named(name)
        return _BASIC.get((module, name)) or _named_safe(module, name)

    stack: list

    def load_build(self) -> None:
        if not self._trusted and isinstance(self.stack[-2], (type, types.FunctionType)):
            raise pickle.UnpicklingError(f"load: attributes of a {type(self.stack[-2]).__name__}")
        super().load_build()  # type: ignore[misc]

    dispatch[pickle.BUILD[0]] = load_build  # type: ignore[assignment]
