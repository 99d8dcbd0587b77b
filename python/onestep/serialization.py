"""save and load: PyTorch's zip files of tensors, numbers, strings and containers of them, and safetensors."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import struct
import types
import zipfile
from collections import Counter, OrderedDict
from typing import Any, Dict, Iterator, List, Optional

import onestep
from onestep import _C
from onestep._pickle_writer import STORAGES, PickleWriter, Refused
from onestep.nn.parameter import Parameter

_safe: List[Any] = []
_SAFETENSORS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "U8": "uint8",
    "BOOL": "bool",
}


def _dtype(name: str) -> Any:
    return getattr(onestep, name)


def _from_bytes(data: bytes, dtype: Any, shape: Any) -> _C.Tensor:
    """A tensor over a copy of data."""
    return _C.frombuffer(bytearray(data), dtype=dtype).reshape(shape) if data else _C.empty(shape, dtype=dtype)


@contextlib.contextmanager
def _opened(f: Any, mode: str) -> Iterator[Any]:
    if hasattr(f, "read") or hasattr(f, "write"):
        yield f
    elif mode == "rb":
        with open(os.fspath(f), mode) as file:
            yield file
    else:  # under another name first: a save that fails leaves the earlier file
        path = os.fspath(f)
        beside = f"{path}.{os.getpid()}.part"
        try:
            with open(beside, mode) as file:
                yield file
            os.replace(beside, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(beside)


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, **kwargs: Any) -> None:
    """Writes obj into a file: as safetensors if its name ends so, else as PyTorch's zip format.

    Other objects, such as whole models, are pickled; load() reads those with weights_only=False or add_safe_globals() only.
    """
    name = "" if hasattr(f, "write") else os.fspath(f)
    if str(name).endswith(".safetensors"):
        return save_safetensors(obj, f)
    writer = PickleWriter()
    whole = False
    try:
        data = writer.write(obj)
    except Refused as refused:
        whole = True
        writer.storages = {}
        try:
            data = pickle.dumps(obj, 2)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(f"{refused}, and cannot be pickled: {error}") from error
    with _opened(f, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def put(path: str, content: Any) -> None:
            archive.writestr(zipfile.ZipInfo("archive/" + path), content)

        put("data.pkl", data)
        if whole:
            put("onestep_object", "")
        put("byteorder", "little")
        for key, content in writer.storages.items():
            put(f"data/{key}", content)
        put("version", "3\n")


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: Optional[bool] = None,
    mmap: Optional[bool] = None,
    **kwargs: Any,
) -> Any:
    """What save(), or torch.save, wrote. Runs no code of the file: names that are not known are refused."""
    try:
        return _load(f, weights_only is False)
    except (RuntimeError, pickle.UnpicklingError) as error:
        kind = pickle.UnpicklingError if isinstance(error, pickle.UnpicklingError) else RuntimeError
        raise kind(f"{error} ({f if hasattr(f, 'read') else os.fspath(f)})") from error


def _load(f: Any, trusted: bool) -> Any:
    with _opened(f, "rb") as file:
        start = file.read(2)
        file.seek(-len(start), os.SEEK_CUR)
        if start != b"PK":
            return _read_safetensors(file.read())
        content = io.BytesIO(file.read())
    try:
        archive = zipfile.ZipFile(content)
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):  # could be of any size
            raise RuntimeError("load: the zip file is compressed, which torch.save does not do")
        names = [name for name in archive.namelist() if name.rsplit("/", 1)[-1] == "data.pkl"]
        if len(names) != 1:
            raise RuntimeError("load: the zip file holds no data.pkl; it was not written by save()")
        prefix = names[0][: -len("data.pkl")]
        with contextlib.suppress(KeyError):
            if archive.read(prefix + "byteorder") != b"little":
                raise RuntimeError("load: the file's numbers are big-endian, which is not supported")
        data = archive.read(names[0])
        whole = prefix + "onestep_object" in archive.namelist()
        reader = _ObjectReader(data, trusted) if whole else _Reader(data, archive, prefix)
        return reader.load()
    except zipfile.BadZipFile as error:
        raise RuntimeError(f"load: the zip file is damaged: {error}") from error
    except (EOFError, IndexError, struct.error, ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:
        raise pickle.UnpicklingError(f"load: the file's data.pkl is damaged: {error}") from error


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
        "global by default. Save a state_dict(), or use weights_only=False for a file that you trust "
        "and that this package wrote."
    )


class _StorageType:
    def __init__(self, dtype: str) -> None:
        self.dtype = _dtype(dtype)


def _rebuild_tensor_v2(
    storage: _C.Tensor, offset: int, size: Any, stride: Any, requires_grad: bool, hooks: Any, metadata: Any = None
) -> _C.Tensor:
    last = offset + sum((n - 1) * step for n, step in zip(size, stride)) if 0 not in size else -1
    if offset < 0 or min(size, default=0) < 0 or min(stride, default=0) < 0 or last >= storage.numel():
        raise pickle.UnpicklingError(
            f"load: a tensor of sizes {tuple(size)}, strides {tuple(stride)}, offset {offset} lies "
            f"outside its storage of {storage.numel()} elements"
        )
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


class _Reader(pickle._Unpickler):  # type: ignore[name-defined]
    """Reads a data.pkl in which only these names may occur; all are functions and types of ours without side effects."""

    dispatch = dict(pickle._Unpickler.dispatch)  # type: ignore[attr-defined]

    def __init__(self, data: bytes, archive: zipfile.ZipFile, prefix: str) -> None:
        super().__init__(io.BytesIO(data))
        self._archive, self._prefix = archive, prefix
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
                    return _dtype(dtype)
        return _named_safe(module, name)

    def persistent_load(self, saved: Any) -> _C.Tensor:
        kind, storage, key, _, numel = saved
        if kind != "storage" or not isinstance(storage, _StorageType):
            raise pickle.UnpicklingError(f"load: a persistent id of kind {kind!r}")
        if key not in self._storages:
            data = self._archive.read(f"{self._prefix}data/{key}")
            if len(data) != numel * storage.dtype.itemsize:
                raise pickle.UnpicklingError(
                    f"load: storage {key} has {len(data)} bytes, not {numel} elements of {storage.dtype}"
                )
            self._storages[key] = _from_bytes(data, storage.dtype, (numel,))
        return self._storages[key]

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
    _Reader.dispatch[_code[0]] = _shallow(_Reader.dispatch[_code[0]])


class _ObjectReader(pickle._Unpickler):  # type: ignore[name-defined]
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
            return _dtype(name)
        return _BASIC.get((module, name)) or _named_safe(module, name)

    stack: list

    def load_build(self) -> None:
        if not self._trusted and isinstance(self.stack[-2], (type, types.FunctionType)):
            raise pickle.UnpicklingError(f"load: attributes of a {type(self.stack[-2]).__name__}")
        super().load_build()  # type: ignore[misc]

    dispatch[pickle.BUILD[0]] = load_build  # type: ignore[assignment]


# ---- safetensors ------------------------------------------------------------------------------------------------------
def save_safetensors(tensors: Dict[str, _C.Tensor], f: Any, metadata: Optional[Dict[str, str]] = None) -> None:
    """Writes a dict of tensors as a safetensors file, by descending alignment, then name."""
    if not isinstance(tensors, dict) or not all(isinstance(t, _C.Tensor) for t in tensors.values()):
        raise TypeError("save: a safetensors file holds a dict of tensors and nothing else")
    names = {dtype: name for name, dtype in _SAFETENSORS.items()}
    header: Dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    parts, end = [], 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        data = tensor.detach().contiguous()._bytes()
        header[name] = {
            "dtype": names[str(tensor.dtype).split(".")[-1]],
            "shape": list(tensor.shape),
            "data_offsets": [end, end + len(data)],
        }
        parts.append(data)
        end += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with _opened(f, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for data in parts:
            file.write(data)


def _unique(pairs: List) -> Dict:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise RuntimeError("load: the safetensors header names something twice")
    return result


def _read_safetensors(data: bytes) -> "OrderedDict[str, _C.Tensor]":
    """Checks header and offsets as the reference does: no holes, no overlap, nothing outside the file."""
    size = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else None
    if size is None or size > min(100_000_000, len(data) - 8) or data[8:9] != b"{":
        raise RuntimeError("load: the file is neither PyTorch's zip format nor safetensors")
    try:
        header = json.loads(data[8 : 8 + size].decode(), object_pairs_hook=_unique)
        header.pop("__metadata__", None)
        entries = sorted(
            ((*e["data_offsets"], name, e["dtype"], e["shape"]) for name, e in header.items()), key=lambda e: e[:2]
        )
        for begin, end, _, dtype, shape in entries:
            if not (type(begin) is int and type(end) is int and isinstance(dtype, str) and isinstance(shape, list)):
                raise TypeError("an entry holds another kind of value than it should")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RuntimeError(f"load: the safetensors header is damaged: {error}") from error
    at, result = 0, {}
    for begin, end, name, dtype, shape in entries:
        if dtype not in _SAFETENSORS:
            raise RuntimeError(f"load: tensor {name!r} has the dtype {dtype}, which is not supported")
        count = 1
        for n in shape:
            if type(n) is not int or not 0 <= n < 2**63:
                raise RuntimeError(f"load: tensor {name!r} has the shape {shape}")
            count *= n
        kind = _dtype(_SAFETENSORS[dtype])
        if begin != at or end - begin != count * kind.itemsize:
            raise RuntimeError(f"load: tensor {name!r} of shape {shape} is at bytes {begin} to {end}")
        at = end
        if 8 + size + end > len(data):
            raise RuntimeError(f"load: tensor {name!r} ends behind the end of the file")
        result[name] = _from_bytes(data[8 + size + begin : 8 + size + end], kind, tuple(shape))
    if 8 + size + at != len(data):
        raise RuntimeError("load: there are bytes after the last tensor of the safetensors file")
    return OrderedDict((name, result[name]) for name in header)
