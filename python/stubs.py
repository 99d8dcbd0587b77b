"""Writes the type stubs of the extension module: stubs.py MODULE.so OUT.pyi"""

from __future__ import annotations

import importlib.util
import keyword
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "onestep"))
from _signatures import parse  # noqa: E402 - of the package that is being built

TYPES = {
    "Tensor": "Tensor", "Scalar": "Number", "int": "_int", "float": "_float", "bool": "_bool", "int[]": "_int | Sequence[_int]",
    "int?[]": "_int | Sequence[_int | None]",
    "float[]": "_float | Sequence[_float]", "Tensor[]": "Sequence[Tensor]", "dtype": "_dtype | builtins.type[Any]", "str": "str",
    "Generator": "Generator", "any": "Any",
}  # fmt: skip
OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
HEADER = '''"""The engine: written by python/stubs.py."""

import builtins
from builtins import bool as _bool, float as _float, int as _int
from typing import Any, Callable, Iterator, Sequence, overload

Number = _int | _float | _bool
'''


def returns(op: str) -> str:
    """The type of a result: Tensor but for these."""
    pairs = {"cummax", "cummin", "sort", "topk", "kthvalue", "aminmax", "var_mean", "std_mean", "_meshgrid", "split", "chunk", "unbind",
             "tensor_split", "split_with_sizes", "stride"}  # fmt: skip
    known = {"numel": "_int", "nelement": "_int", "dim": "_int", "ndimension": "_int", "storage_offset": "_int", "element_size": "_int",
             "data_ptr": "_int", "get_device": "_int", "equal": "_bool", "allclose": "_bool", "item": "Any", "tolist": "Any",
             "size": "Any", "backward": "None", "retain_grad": "None", "_repr": "str", "_bytes": "bytes", "set_default_dtype": "None",
             "get_default_dtype": "dtype", "promote_types": "dtype", "result_type": "dtype"}  # fmt: skip
    if op.startswith("is_"):
        return "_bool"
    if op in {"max", "min", "median", "unique", "nonzero", "argwhere", "where"} or "pool" in op:
        return "Any"
    return "tuple[Tensor, ...]" if op in pairs else known.get(op, "Tensor")


def one(name: str, signature: str, method: bool, overloaded: bool, indent: str) -> str:
    op, parameters = parse(signature)
    parts, named = [], False
    for i, p in enumerate(parameters):
        if method and i == 0:
            parts.append("self")
            continue
        if p.by_name and not named:
            parts.append("*")
            named = True
        argument = f"__{p.name}" if keyword.iskeyword(p.name) else p.name  # `from`: by position
        kind = TYPES[p.kind] + (" | None" if p.none and p.kind != "any" else "")
        default = "" if p.default is None else f" = {p.default}" if p.default not in ("inf", "()") else " = ..."
        varargs = p.kind == "int[]" and i == method and p.default is None and not any(q.by_name is False for q in parameters[i + 1 :])
        if varargs:
            parts.append(f"*{p.name}: Any")
            named = True
        else:
            parts.append(f"{argument}: {kind}{default}")
    if not method and returns(op) == "Tensor" and not op.endswith("_") and not any(p.name == "out" for p in parameters):
        parts += ["out: Tensor | None = None"] if named else ["*", "out: Tensor | None = None"]
    decorator = f"{indent}@overload\n" if overloaded else ""
    return f"{decorator}{indent}def {name}({', '.join(parts)}) -> {returns(op)}: ...\n"


def ops(owner, method: bool, indent: str) -> str:
    text = ""
    for name, value in sorted(vars(owner).items()):
        signatures = getattr(value, "__signatures__", None)
        for signature in signatures or []:
            stub = one(name, signature, method, len(signatures) > 1, indent)
            text += stub.rstrip("\n") + ("  # type: ignore[overload-cannot-match]\n" if len(signatures) > 1 else "\n")
    return text


def tensor_class(module) -> str:
    text = "\n_dtype = dtype\n_device = device\n_layout = layout\n\n\nclass Tensor:\n    __array_priority__: _int\n    def __init__(self, *data: Any) -> None: ...\n"
    for name, value in sorted(vars(module.Tensor).items()):
        if type(value).__name__ == "getset_descriptor" and not name.startswith("__"):
            kinds = {"shape": "Size", "dtype": "_dtype", "device": "_device", "layout": "_layout", "ndim": "_int", "itemsize": "_int",
                     "nbytes": "_int", "_version": "_int", "grad": "Tensor | None", "grad_fn": "_GradFn | None",
                     "_base": "Tensor | None"}  # fmt: skip
            bare = "Tensor" if name in {"data", "T", "mT", "H", "mH", "real"} else "_bool"
            text += f"    {name}: {kinds.get(name, bare)}\n"
    for name in OPERATORS:
        for prefix in ("", "r", "i"):
            text += f"    def __{prefix}{name}__(self, other: Any) -> Tensor: ...\n"
    for name in ("lt", "le", "gt", "ge"):
        text += f"    def __{name}__(self, other: Any) -> Tensor: ...\n"
    for name in ("eq", "ne"):
        text += f"    def __{name}__(self, other: object) -> Tensor: ...  # type: ignore[override]\n"
    for name in ("neg", "pos", "abs", "invert"):
        text += f"    def __{name}__(self) -> Tensor: ...\n"
    text += """    def __hash__(self) -> _int: ...
    def __bool__(self) -> _bool: ...
    def __int__(self) -> _int: ...
    def __float__(self) -> _float: ...
    def __index__(self) -> _int: ...
    def __len__(self) -> _int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __getitem__(self, key: Any) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def register_hook(self, hook: Callable[[Tensor], Any]) -> RemovableHandle: ...
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], Any]) -> RemovableHandle: ...
    def detach_(self) -> Tensor: ...
    def numpy(self, *, force: _bool = False) -> Any: ...
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any: ...
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[_int, _int]: ...
    def type(self, dtype: Any = None, non_blocking: _bool = False) -> Any: ...
    def cuda(self, device: Any = None, non_blocking: _bool = False, memory_format: Any = None) -> Tensor: ...
    def apply_(self, function: Callable[[Any], Any]) -> Tensor: ...
    @staticmethod
    def _make_subclass(cls: Any, data: Tensor, requires_grad: _bool = False) -> Any: ...
"""
    return text + ops(module.Tensor, True, "    ")


def others(module) -> str:
    text = "\nclass Size(tuple[_int, ...]):\n    def numel(self) -> _int: ...\n"
    for name, value in sorted(vars(module).items()):
        if hasattr(value, "__signatures__") or name in {"Tensor", "Size"} or name.startswith("__"):
            continue
        if isinstance(value, type) and issubclass(value, Exception):
            bases = ", ".join("builtins." + b.__name__ if b.__module__ == "builtins" else b.__name__ for b in value.__bases__)
            text += f"\nclass {name}({bases}): ...  # type: ignore[misc]\n"
        elif isinstance(value, type):
            text += f"\nclass {name}:\n    def __init__(self, *args: Any) -> None: ...\n    def __setattr__(self, name: str, value: Any) -> None: ...\n    def __getattr__(self, name: str) -> Any: ...\n"
        elif isinstance(value, module.dtype):
            text += f"\n{name}: dtype\n"
        elif callable(value):
            text += f"\ndef {name}(*args: Any, **keywords: Any) -> Any: ...\n"
        else:
            text += f"\n{name}: {type(value).__name__}\n"
    return text


def main(path: str, out: str) -> None:
    spec = importlib.util.spec_from_file_location("onestep._C", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with open(out, "w", encoding="utf-8") as file:
        file.write(HEADER + others(module) + tensor_class(module) + "\n" + ops(module, False, ""))


if __name__ == "__main__":
    main(*sys.argv[1:])
