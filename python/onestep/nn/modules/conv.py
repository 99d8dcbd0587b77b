"""Convolutions."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence, Tuple, Union

from onestep import _C
from onestep.nn import functional as F
from onestep.nn import init
from onestep.nn.modules.linear import _empty
from onestep.nn.modules.module import Module

Size = Union[int, Sequence[int]]


def _tuple(value: Any, n: int) -> Tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


class _ConvNd(Module):
    _dims: int
    _transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size,
        padding: Union[str, Size],
        dilation: Size,
        groups: int,
        bias: bool,
        padding_mode: str,
        output_padding: Size,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        n = self._dims
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        modes = {"zeros", "reflect", "replicate", "circular"}
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {sorted(modes)}, but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.dilation = _tuple(kernel_size, n), _tuple(stride, n), _tuple(dilation, n)
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        self.padding = padding if isinstance(padding, str) else _tuple(padding, n)
        self.transposed, self.output_padding = self._transposed, _tuple(output_padding, n)
        ends = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        self.weight = _empty(*ends, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", _empty(out_channels, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws both uniformly within 1 / sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = init._calculate_fan_in_and_fan_out(self.weight)[0]
            if fan_in != 0:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        n = self._dims
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * n:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * n:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * n:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")


class _Conv(_ConvNd):
    _function: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Union[str, Size] = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, 0, device, dtype
        )

    def _both_sides(self) -> list:
        """The padding of the last dim first, before and after, as F.pad takes it."""
        sides: list = []
        for d in reversed(range(self._dims)):
            if self.padding == "same":
                total = self.dilation[d] * (self.kernel_size[d] - 1)
                sides += [total // 2, total - total // 2]
            else:
                sides += [0, 0] if self.padding == "valid" else [self.padding[d]] * 2
        return sides

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        if self.padding_mode == "zeros":
            return type(self)._function(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._both_sides(), mode=self.padding_mode)
        return type(self)._function(padded, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


class Conv1d(_Conv):
    """[N, C_in, L] -> [N, C_out, L'], with weight [C_out, C_in / groups, kernel]."""

    _dims = 1
    _function = staticmethod(_C.conv1d)


class Conv2d(_Conv):
    """[N, C_in, H, W] -> [N, C_out, H', W'], with weight [C_out, C_in / groups, kernel, kernel]."""

    _dims = 2
    _function = staticmethod(_C.conv2d)


class Conv3d(_Conv):
    """[N, C_in, D, H, W] -> [N, C_out, D', H', W'], with weight [C_out, C_in / groups, kernel, kernel, kernel]."""

    _dims = 3
    _function = staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    _function: Any
    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            output_padding,
            device,
            dtype,
        )

    def _output_padding(self, input: _C.Tensor, output_size: Optional[Sequence[int]]) -> Tuple:
        """What must be added so that the output has the size asked for."""
        if output_size is None:
            return self.output_padding
        n = self._dims
        sizes = list(output_size)[-n:]
        result = []
        for d in range(n):
            smallest = (
                (input.size(d - n) - 1) * self.stride[d]
                - 2 * self.padding[d]
                + self.dilation[d] * (self.kernel_size[d] - 1)
                + 1
            )
            if not smallest <= sizes[d] < smallest + self.stride[d]:
                raise ValueError(
                    f"requested an output size of {sizes}, but valid sizes range from {smallest} to "
                    f"{smallest + self.stride[d] - 1} (for an input of {list(input.shape[2:])})"
                )
            result.append(sizes[d] - smallest)
        return tuple(result)

    def forward(self, input: _C.Tensor, output_size: Optional[Sequence[int]] = None) -> _C.Tensor:
        return type(self)._function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTransposeNd):
    """The gradient of Conv1d as a layer: [N, C_in, L] -> [N, C_out, L']."""

    _dims = 1
    _function = staticmethod(_C.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """The gradient of Conv2d as a layer: [N, C_in, H, W] -> [N, C_out, H', W']."""

    _dims = 2
    _function = staticmethod(_C.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """The gradient of Conv3d as a layer: [N, C_in, D, H, W] -> [N, C_out, D', H', W']."""

    _dims = 3
    _function = staticmethod(F.conv_transpose3d)
