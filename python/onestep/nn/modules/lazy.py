"""Layers whose input size is that of their first input."""

from __future__ import annotations

import itertools
from typing import Any, Optional

import onestep
from onestep import _C
from onestep.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Size,
)
from onestep.nn.modules.linear import Linear
from onestep.nn.modules.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from onestep.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy


class LazyModuleMixin:
    """initialize_parameters(input) gives parameters their shape before the first forward; the class is cls_to_become then."""

    cls_to_become: Any = None
    _parameters: dict
    _buffers: dict

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[misc]
        self._load_hook = self.register_load_state_dict_pre_hook(_load)
        self._initialize_hook = self.register_forward_pre_hook(_infer, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives all parameters and buffers their shapes and values, from the first input."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        return any(map(is_lazy, itertools.chain(self._parameters.values(), self._buffers.values())))


def _load(module: Any, state_dict: dict, prefix: str, *_: Any) -> None:
    """Gives what has no shape yet the shape that it has in the state_dict."""
    for name, held in itertools.chain(module._parameters.items(), module._buffers.items()):
        given = state_dict.get(prefix + name)
        if is_lazy(held) and given is not None and not is_lazy(given):
            held.materialize(given.shape)


def _infer(module: Any, args: tuple, kwargs: dict) -> None:
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


class _Lazy(LazyModuleMixin):
    """A layer that is made for the smallest input; its parameters wait for the size of the first one."""

    _size: str  # the attribute that holds the input's size

    def _make(self: Any, smallest: int, *args: Any, **kwargs: Any) -> None:
        state = onestep.get_rng_state()
        super().__init__(smallest, *args, **kwargs)
        onestep.set_rng_state(state)
        setattr(self, self._size, 0)
        for name, held in self._parameters.items():
            if held is not None:
                self._parameters[name] = UninitializedParameter(dtype=held.dtype)
        for name, held in self._buffers.items():
            if held is not None and held.is_floating_point():
                self._buffers[name] = UninitializedBuffer(dtype=held.dtype)

    def _input_size(self, input: _C.Tensor) -> int:
        raise NotImplementedError

    def _shape(self: Any, name: str, size: int) -> tuple:
        """The shape of a parameter or buffer for this size of the input."""
        raise NotImplementedError

    def initialize_parameters(self: Any, input: _C.Tensor, *args: Any, **kwargs: Any) -> None:
        if self.has_uninitialized_params():
            size = self._input_size(input)
            for name, held in itertools.chain(self._parameters.items(), self._buffers.items()):
                if is_lazy(held):
                    held.materialize(self._shape(name, size))
            setattr(self, self._size, size)
            self.reset_parameters()
        elif getattr(self, self._size) == 0:  # a state_dict gave the shapes
            setattr(self, self._size, self._input_size(input))


class LazyLinear(_Lazy, Linear):
    """Linear whose in_features are those of its first input."""

    cls_to_become = Linear
    _size = "in_features"

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        self._make(1, out_features, bias, device, dtype)

    def _input_size(self, input: _C.Tensor) -> int:
        return input.size(-1)

    def _shape(self, name: str, size: int) -> tuple:
        return (self.out_features, size) if name == "weight" else (self.out_features,)


class _LazyConvNd(_Lazy):
    _size = "in_channels"

    def _input_size(self: Any, input: _C.Tensor) -> int:
        dims = self._dims + 1
        if input.dim() not in (dims, dims + 1):
            raise RuntimeError(
                f"Expected {dims}D (unbatched) or {dims + 1}D (batched) input to {type(self).__name__}, but "
                f"got input of size: {input.shape}"
            )
        size = input.size(-dims)
        if size % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        return size

    def _shape(self: Any, name: str, size: int) -> tuple:
        if name == "bias":
            return (self.out_channels,)
        ends = (size, self.out_channels // self.groups) if self.transposed else (self.out_channels, size // self.groups)
        return (*ends, *self.kernel_size)


class _LazyConv(_LazyConvNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Any = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._make(groups, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)


class _LazyConvTranspose(_LazyConvNd):
    def __init__(
        self,
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
        self._make(
            groups,
            out_channels,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            bias,
            dilation,
            padding_mode,
            device,
            dtype,
        )


class _LazyNorm(_Lazy):
    _size = "num_features"

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: Optional[float] = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        self._make(1, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _input_size(self: Any, input: _C.Tensor) -> int:
        self._check_dims(input)
        return input.size(1 if input.dim() == self._dims[-1] or self._dims[0] == 2 else 0)

    def _shape(self, name: str, size: int) -> tuple:
        return (size,)


class LazyConv1d(_LazyConv, Conv1d):
    """Conv1d whose in_channels are those of its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """Conv2d whose in_channels are those of its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """Conv3d whose in_channels are those of its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """ConvTranspose1d whose in_channels are those of its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """ConvTranspose2d whose in_channels are those of its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """ConvTranspose3d whose in_channels are those of its first input."""

    cls_to_become = ConvTranspose3d


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """BatchNorm1d whose num_features are the channels of its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """BatchNorm2d whose num_features are the channels of its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """BatchNorm3d whose num_features are the channels of its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """InstanceNorm1d whose num_features are the channels of its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """InstanceNorm2d whose num_features are the channels of its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """InstanceNorm3d whose num_features are the channels of its first input."""

    cls_to_become = InstanceNorm3d
