"""Writes state dicts as the pickle that PyTorch's zip files hold, without running pickle."""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from typing import Any, Dict, List, Tuple

import onestep
from onestep import _C
from onestep._complex import ComplexDType
from onestep.nn.parameter import Parameter

STORAGES = {
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
    "complex32": "ComplexHalfStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}


class Refused(TypeError):
    """A value that is no tensor, number, string or container of them."""


def bytes_of(x: _C.Tensor) -> memoryview:
    """The elements of a contiguous tensor, in its own memory."""
    elements: Any = x.detach().reshape(-1).view(onestep.uint8)
    return memoryview(elements)


class PickleWriter:
    """`write(value)` gives the bytes; `storages` the elements of the tensors in it, by key."""

    def __init__(self) -> None:
        self._out: List[bytes] = []
        self._used: Dict[Tuple[int, str], Tuple[str, int, _C.Tensor]] = {}  # of each storage: key, elements, tensor
        self._pairs: Dict[int, _C.Tensor] = {}  # of complex tensors, whose parts lie side by side in the file
        self._open: List[int] = []
        self.storages: Dict[str, memoryview] = {}

    def write(self, value: Any) -> bytes:
        for _ in range(2):  # the first time only to see how much of each storage is used
            self._out = [b"\x80\x02"]
            self._value(value, "")
        self._out.append(b".")
        for key, count, tensor in self._used.values():
            self.storages[key] = bytes_of(tensor.as_strided((count,), (1,), 0))
        return b"".join(self._out)

    def _call(self, module: str, name: str, args: tuple, path: str) -> None:
        self._out.append(f"c{module}\n{name}\n".encode())
        self._value(args, path)
        self._out.append(b"R")

    def _value(self, x: Any, path: str) -> None:
        out = self._out
        if x is None:
            out.append(b"N")
        elif x is True or x is False:
            out.append(b"\x88" if x else b"\x89")
        elif type(x).__module__ == "numpy" and getattr(x, "ndim", 1) == 0:
            self._value(x.item(), path)
        elif isinstance(x, int):
            size = (x.bit_length() + 8) // 8
            if not -(2**31) <= x < 2**31 and size > 255:
                raise Refused(f"save: an integer of {size} bytes at {path or 'the top'}")
            out.append(
                struct.pack("<ci", b"J", x)
                if -(2**31) <= x < 2**31
                else struct.pack("<cB", b"\x8a", size) + x.to_bytes(size, "little", signed=True)
            )
        elif isinstance(x, float):
            out.append(struct.pack(">cd", b"G", x))
        elif isinstance(x, str):
            text = x.encode("utf-8", "surrogatepass")
            out.append(struct.pack("<cI", b"X", len(text)) + text)
        elif isinstance(x, bytes):
            self._call("_codecs", "encode", (x.decode("latin1"), "latin1"), path)
        elif isinstance(x, _C.Tensor):
            self._tensor(x, path)
        elif isinstance(x, (onestep.dtype, ComplexDType)):
            out.append(f"ctorch\n{str(x).split('.')[-1]}\n".encode())
        elif isinstance(x, onestep.device):
            self._call("torch", "device", (str(x),), path)
        elif isinstance(x, onestep.Size):
            self._call("torch", "Size", (tuple(x),), path)
        elif type(x) in (tuple, list, set) or isinstance(x, dict):
            self._container(x, path)
        else:
            hint = " (save its state_dict())" if hasattr(x, "state_dict") else ""
            raise Refused(
                f"save: a {type(x).__module__}.{type(x).__qualname__} at {path or 'the top'} is no tensor, number, "
                f"string or container of them{hint}"
            )

    def _container(self, x: Any, path: str) -> None:
        if id(x) in self._open:
            raise Refused(f"save: the container at {path or 'the top'} contains itself")
        self._open.append(id(x))
        out = self._out
        if isinstance(x, tuple):
            out.append(b"(")
            for i, one in enumerate(x):
                self._value(one, f"{path}[{i}]")
            out.append(b"t")
        elif isinstance(x, list):
            out.append(b"](")
            for i, one in enumerate(x):
                self._value(one, f"{path}[{i}]")
            out.append(b"e")
        elif isinstance(x, set):
            self._call("builtins", "set", (list(x),), path)
        elif isinstance(x, Counter):
            self._call("collections", "Counter", (dict(x),), path)
        else:
            out.append(b"ccollections\nOrderedDict\n)R(" if isinstance(x, OrderedDict) else b"}(")
            for key, one in x.items():
                self._value(key, path)
                self._value(one, f"{path}[{key!r}]")
            out.append(b"u")
            if getattr(x, "_metadata", None) is not None:
                self._value({"_metadata": x._metadata}, path)
                out.append(b"b")
        self._open.pop()

    def _tensor(self, x: _C.Tensor, path: str) -> None:
        if isinstance(x, Parameter):
            self._out.append(b"ctorch._utils\n_rebuild_parameter\n(")
            self._tensor(x.detach(), path)
            self._value(x.requires_grad, path)
            self._value(OrderedDict(), path)
            self._out.append(b"tR")
            return
        dtype, requires_grad, each = str(x.dtype).split(".")[-1], x.requires_grad, 1
        if x.is_complex():
            x, each = self._pairs.setdefault(id(x), onestep.view_as_real(x).detach()), 2
        offset, strides = x.storage_offset(), tuple(x.stride())
        storage = (x.data_ptr() - offset * x.element_size(), dtype)  # views and tied weights share it
        last = int(offset + sum((size - 1) * step for size, step in zip(x.shape, strides)) + 1) if x.numel() else 0
        key, count, _ = self._used.get(storage, (str(len(self._used)), 0, x))
        count = max(last, count)
        self._used[storage] = key, count, x.detach()
        self._out.append(b"ctorch._utils\n_rebuild_tensor_v2\n((")
        self._value("storage", path)
        self._out.append(f"ctorch\n{STORAGES[dtype]}\n".encode())
        for name in (key, "cpu", count // each):
            self._value(name, path)
        self._out.append(b"tQ")
        shape = tuple(x.shape)
        if each == 2:
            shape, strides = shape[:-1], tuple(step // 2 for step in strides[:-1])
        one: Any
        for one in (offset // each, shape, strides, requires_grad, OrderedDict()):
            self._value(one, path)
        self._out.append(b"tR")
