"""save and load: PyTorch's zip files of tensors, numbers, strings and containers of them, and safetensors."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import pickle
import struct
import zipfile
import zlib
from collections import OrderedDict
from typing import Any, Callable, Dict, Iterator, List, Optional, Union

import onestep
from onestep import _C
from onestep._pickle_reader import (
    ObjectReader,
    Reader,
    TrustingReader,
    add_safe_globals,
    dtype_named,
    safe_globals,
    tensor_from_bytes,
)
from onestep._pickle_writer import PickleWriter, Refused, bytes_of

MAP_LOCATION = Optional[Union[Callable[[Any, str], Any], str, Dict[str, str]]]  # what programs annotate

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


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
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
    unknown = [name for name in kwargs if name not in ("encoding", "errors", "fix_imports")]
    if unknown:
        raise TypeError(f"load() got an unexpected keyword argument '{unknown[0]}'")
    if isinstance(map_location, (str, onestep.device)):
        _C.empty(0, device=map_location)  # which must be here
    elif map_location is not None and not callable(map_location) and not isinstance(map_location, dict):
        raise TypeError(f"load: map_location must be a device, its name, a dict or a function: got {type(map_location).__name__}")
    try:
        return _load(f, weights_only is False)
    except (RuntimeError, pickle.UnpicklingError) as error:
        kind = pickle.UnpicklingError if isinstance(error, pickle.UnpicklingError) else RuntimeError
        said = str(error) if str(error).startswith(("load: ", "Weights only")) else f"load: {error}"
        raise kind(f"{said} ({f if hasattr(f, 'read') else os.fspath(f)})") from error


def _load(f: Any, trusted: bool) -> Any:
    with _opened(f, "rb") as file:
        if isinstance(file, io.RawIOBase) or not (hasattr(file, "readinto") and hasattr(file, "seekable") and file.seekable()):
            file = io.BytesIO(file.read())
        first = file.tell()
        start = file.read(2)
        file.seek(0, os.SEEK_END)
        end = file.tell()
        file.seek(first)
        if start == b"\x80\x02":
            return _read_legacy(file.read(), trusted)
        if start == b"PK":
            return _read_zip(file, end, trusted)
        return _read_safetensors(file, end - first)


def _read_into_memory(file: Any, size: int) -> _C.Tensor:
    """The next bytes of a file, which has so many, as uint8 in memory that tensors can have."""
    memory = _C.empty((size,), dtype=onestep.uint8)
    left = bytes_of(memory)
    while len(left) > 0:
        count = file.readinto(left)
        if not count:
            raise RuntimeError("load: the file has become shorter while it was read")
        left = left[count:]
    return memory


@contextlib.contextmanager
def _named_as_damaged_zip() -> Iterator[None]:
    """What reading a damaged zip file comes to as a RuntimeError."""
    try:
        yield
    except (zipfile.BadZipFile, struct.error, EOFError, ValueError, OverflowError, NotImplementedError) as error:
        raise RuntimeError(f"load: the zip file is damaged: {error or 'it ends too early'}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # which a place outside the file gives
            raise
        raise RuntimeError("load: the zip file is damaged: it points outside itself") from error


def _read_zip(file: Any, end: int, trusted: bool) -> Any:
    with _named_as_damaged_zip():
        archive = zipfile.ZipFile(file)
        for entry in archive.infolist():
            if entry.compress_type != zipfile.ZIP_STORED:  # could be of any size
                raise RuntimeError("load: the zip file is compressed, which torch.save does not do")
            if not 0 <= entry.header_offset <= end - max(entry.file_size, entry.compress_size):
                raise zipfile.BadZipFile(f"{entry.filename!r} is not inside the file")
            if entry.flag_bits & 1:
                raise zipfile.BadZipFile(f"{entry.filename!r} is encrypted")
        names = [name for name in archive.namelist() if name.rsplit("/", 1)[-1] == "data.pkl"]
        if len(names) != 1:
            raise RuntimeError("load: the zip file holds no data.pkl; it was not written by save()")
        prefix = names[0][: -len("data.pkl")]
        with contextlib.suppress(KeyError):
            if archive.read(prefix + "byteorder") != b"little":
                raise RuntimeError("load: the file's numbers are big-endian, which is not supported")
        data = archive.read(names[0])

    def storage(key: str, size: int) -> _C.Tensor:
        entry = archive.getinfo(f"{prefix}data/{key}")
        with _named_as_damaged_zip():
            archive.open(entry).close()  # checks the header that stands before it
            file.seek(entry.header_offset + 26)
            file.seek(entry.header_offset + 30 + sum(struct.unpack("<HH", file.read(4))))
            found = _read_into_memory(file, entry.file_size)
            if zlib.crc32(bytes_of(found)) != entry.CRC:
                raise zipfile.BadZipFile(f"Bad CRC-32 for file {entry.filename!r}")
        return found

    with _named_as_damage():
        if prefix + "onestep_object" in archive.namelist():
            return ObjectReader(data, trusted).load()
        reader = TrustingReader if trusted else Reader
        return reader(io.BytesIO(data), storage).load()


@contextlib.contextmanager
def _named_as_damage() -> Iterator[None]:
    """What reading a damaged pickle comes to as an UnpicklingError."""
    try:
        yield
    except (EOFError, IndexError, struct.error, ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:
        raise pickle.UnpicklingError(f"load: the file's data.pkl is damaged: {error}") from error


def _read_legacy(data: bytes, trusted: bool) -> Any:
    """PyTorch's format before 1.6: pickles of a magic number, a version, the machine, the object and the storages' keys, then for
    each its length and its bytes."""
    file = io.BytesIO(data)

    def next_pickle() -> Any:
        return Reader(file, lambda key, size: b"").load()

    with _named_as_damage():
        if next_pickle() != 0x1950A86A20F9469CFC6C or next_pickle() != 1001:
            raise RuntimeError("load: the file is neither PyTorch's zip format, nor its older one, nor safetensors")
        if not next_pickle()["little_endian"]:
            raise RuntimeError("load: the file's numbers are big-endian, which is not supported")
        left = len(data)

        def zeros(key: str, size: int) -> bytes:
            nonlocal left
            left -= size
            if left < 0:
                raise pickle.UnpicklingError(f"load: storage {key} of {size} bytes ends behind the end of the file")
            return bytes(size)

        reader = (TrustingReader if trusted else Reader)(file, zeros)
        found = reader.load()
        for key in next_pickle():
            file.seek(8, os.SEEK_CUR)
            reader.fill(key, file.read)
        return found


# ---- safetensors ------------------------------------------------------------------------------------------------------
def save_safetensors(tensors: Dict[str, _C.Tensor], f: Any, metadata: Optional[Dict[str, str]] = None) -> None:
    """Writes a dict of tensors as a safetensors file, by descending alignment, then name."""
    if not isinstance(tensors, dict) or not all(isinstance(t, _C.Tensor) for t in tensors.values()):
        raise TypeError("save: a safetensors file holds a dict of tensors and nothing else")
    names = {dtype: name for name, dtype in _SAFETENSORS.items()}
    header: Dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    parts, end = [], 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        if tensor.is_complex():
            raise TypeError(f"save: {name!r} is complex, which a safetensors file of onestep does not hold (save view_as_real)")
        data = bytes_of(tensor.contiguous())
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


def _read_safetensors(file: Any, length: int) -> "OrderedDict[str, _C.Tensor]":
    """Checks header and offsets as the reference does: no holes, no overlap, nothing outside the file."""
    size = struct.unpack("<Q", file.read(8))[0] if length >= 8 else None
    text = b"" if size is None or size > min(100_000_000, length - 8) else file.read(size)
    if text[:1] != b"{":
        raise RuntimeError("load: the file is neither PyTorch's zip format nor safetensors")
    try:
        header = json.loads(text.decode(), object_pairs_hook=_unique)
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
        kind = dtype_named(_SAFETENSORS[dtype])
        if begin != at or end - begin != count * kind.itemsize:
            raise RuntimeError(f"load: tensor {name!r} of shape {shape} is at bytes {begin} to {end}")
        at = end
        if 8 + len(text) + end > length:
            raise RuntimeError(f"load: tensor {name!r} ends behind the end of the file")
        result[name] = tensor_from_bytes(_read_into_memory(file, end - begin), kind, tuple(shape))
    if 8 + len(text) + at != length:
        raise RuntimeError("load: there are bytes after the last tensor of the safetensors file")
    return OrderedDict((name, result[name]) for name in header)
