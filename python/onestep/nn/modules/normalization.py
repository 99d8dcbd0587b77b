"""Normalisation over features, groups and batches."""

from __future__ import annotations

from typing import Any, Optional

import onestep
from onestep import _C
from onestep.nn import functional as F
from onestep.nn import init
from onestep.nn.modules.module import Module
from onestep.nn.parameter import Parameter


def _constant(size: Any, value: float, device: Any, dtype: Any) -> Parameter:
    return Parameter(onestep.full(size, value, device=device, dtype=dtype or onestep.get_default_dtype()))


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dims normalized_shape."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        shape = self.normalized_shape
        self.register_parameter("weight", _constant(shape, 1.0, device, dtype) if elementwise_affine else None)
        self.register_parameter("bias", _constant(shape, 0.0, device, dtype) if elementwise_affine and bias else None)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return _C.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) * weight over the last dims normalized_shape."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: Optional[float] = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", _constant(self.normalized_shape, 1.0, device, dtype) if elementwise_affine else None)

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalises groups of channels of [N, C, ...]."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", _constant((num_channels,), 1.0, device, dtype) if affine else None)
        self.register_parameter("bias", _constant((num_channels,), 0.0, device, dtype) if affine and bias else None)

    reset_parameters = LayerNorm.reset_parameters

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class LocalResponseNorm(Module):
    """x / (k + alpha mean(x^2))^beta, the mean over `size` neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _NormBase(Module):
    """What batch and instance norm have in common: weight and bias, running mean and variance."""

    _version = 2
    _dims: tuple

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: Optional[float] = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_parameter("weight", _constant((num_features,), 1.0, device, dtype) if affine else None)
        self.register_parameter("bias", _constant((num_features,), 0.0, device, dtype) if affine and bias else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", onestep.zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", onestep.ones(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", onestep.tensor(0, dtype=onestep.int64) if tracked else None)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: dict, *rest: Any) -> None:
        key = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked  # files of long ago do not have it
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, and fresh statistics."""
        self.reset_running_stats()
        LayerNorm.reset_parameters(self)  # type: ignore[arg-type]

    def _check_dims(self, input: _C.Tensor) -> None:
        if input.dim() not in self._dims:
            raise ValueError(f"expected {' or '.join(f'{d}D' for d in self._dims)} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"
            f", bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def forward(self, input: _C.Tensor) -> _C.Tensor:
        self._check_dims(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked.item())
        from_batch = self.training or self.running_mean is None
        tracked = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight,
            self.bias,
            from_batch,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Normalises each channel of [N, C] or [N, C, L] over the batch."""

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises each channel of [N, C, H, W] over the batch."""

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalises each channel of [N, C, D, H, W] over the batch."""

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch norm of [N, C, ...] over the batches of all processes, of which there is one here."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: Optional[float] = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        self.process_group = process_group

    def _check_dims(self, input: _C.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with a SyncBatchNorm of the same parameters and buffers for every batch norm."""
        made = module
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group
            )
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        self._check_dims(input)
        batched = input if input.dim() == self._dims[-1] else input.unsqueeze(0)
        result = F.instance_norm(
            batched,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result if batched is input else result.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of [N, C, L] or [C, L]."""

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of [N, C, H, W] or [C, H, W]."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample of [N, C, D, H, W] or [C, D, H, W]."""

    _dims = (4, 5)
