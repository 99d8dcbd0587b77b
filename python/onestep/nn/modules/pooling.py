"""Pooling and padding."""

from __future__ import annotations

from typing import Any, Optional

from onestep import _C
from onestep.nn import functional as F
from onestep.nn.modules.conv import _tuple
from onestep.nn.modules.module import Module


class _MaxPool(Module):
    _function: Any

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.return_indices, self.ceil_mode = padding, dilation, return_indices, ceil_mode

    def forward(self, input: _C.Tensor) -> Any:
        return type(self)._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest value of each window of [N, C, L]."""

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest value of each window of [N, C, H, W]."""

    _function = staticmethod(F.max_pool2d)


class AvgPool1d(Module):
    """The mean of each window of [N, C, L]."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None:
        super().__init__()
        self.kernel_size = _tuple(kernel_size, 1)
        self.stride, self.padding = _tuple(kernel_size if stride is None else stride, 1), _tuple(padding, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window of [N, C, H, W]."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Optional[int] = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptiveAvgPool(Module):
    _function: Any

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def _sizes(self, input: _C.Tensor) -> Any:
        """output_size, in which None keeps the input's."""
        if not isinstance(self.output_size, (tuple, list)):
            return self.output_size
        kept = input.shape[-len(self.output_size) :]
        return [size if size is not None else old for size, old in zip(self.output_size, kept)]

    def forward(self, input: _C.Tensor) -> Any:
        return type(self)._function(input, self._sizes(input))

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means of output_size windows that cover [N, C, L]."""

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means of output_size windows that cover [N, C, H, W]."""

    _function = staticmethod(F.adaptive_avg_pool2d)


class _AdaptiveMaxPool(_AdaptiveAvgPool):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: _C.Tensor) -> Any:
        return type(self)._function(input, self._sizes(input), self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Largest values of output_size windows that cover [N, C, L]."""

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Largest values of output_size windows that cover [N, C, H, W]."""

    _function = staticmethod(F.adaptive_max_pool2d)


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
