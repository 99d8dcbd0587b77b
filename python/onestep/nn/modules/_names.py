"""How PyTorch names the type of a value in its errors."""

from __future__ import annotations

from typing import Any

from onestep import _C

_LEGACY = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "uint8": "Byte",
    "bool": "Bool",
}


def typename(value: Any) -> str:
    """'int', 'torch.FloatTensor' ..."""
    if type(value) is _C.Tensor:
        dtype = str(value.dtype).split(".")[-1]
        return f"torch.{_LEGACY.get(dtype, dtype)}Tensor"
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
