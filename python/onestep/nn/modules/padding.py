"""Padding."""

from __future__ import annotations

from typing import Any

from onestep import _C
from onestep.nn import functional as F
from onestep.nn.modules.conv import _tuple
from onestep.nn.modules.module import Module


class _Pad(Module):
    _sides: int
    _mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _tuple(padding, self._sides)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    _mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReflectionPad1d(_Pad):
    """Padding mirrored at the edge, of the last dim."""

    _sides = 2
    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """Padding mirrored at the edge, of the last 2 dims."""

    _sides = 4
    _mode = "reflect"


class ReflectionPad3d(_Pad):
    """Padding mirrored at the edge, of the last 3 dims."""

    _sides = 6
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """Padding of the edge's value, of the last dim."""

    _sides = 2
    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """Padding of the edge's value, of the last 2 dims."""

    _sides = 4
    _mode = "replicate"


class ReplicationPad3d(_Pad):
    """Padding of the edge's value, of the last 3 dims."""

    _sides = 6
    _mode = "replicate"


class CircularPad1d(_Pad):
    """Padding that goes round, of the last dim."""

    _sides = 2
    _mode = "circular"


class CircularPad2d(_Pad):
    """Padding that goes round, of the last 2 dims."""

    _sides = 4
    _mode = "circular"


class CircularPad3d(_Pad):
    """Padding that goes round, of the last 3 dims."""

    _sides = 6
    _mode = "circular"


class ConstantPad1d(_ConstantPad):
    """Padding of a number, of the last dim."""

    _sides = 2


class ConstantPad2d(_ConstantPad):
    """Padding of a number, of the last 2 dims."""

    _sides = 4


class ConstantPad3d(_ConstantPad):
    """Padding of a number, of the last 3 dims."""

    _sides = 6


class ZeroPad1d(_ZeroPad):
    """Padding of zeros, of the last dim."""

    _sides = 2


class ZeroPad2d(_ZeroPad):
    """Padding of zeros, of the last 2 dims."""

    _sides = 4


class ZeroPad3d(_ZeroPad):
    """Padding of zeros, of the last 3 dims."""

    _sides = 6
