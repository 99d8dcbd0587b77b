"""Batch norm in evaluation, taken into the weights of the layer before it."""

from __future__ import annotations

import copy
from typing import Any, Optional, Tuple

from onestep import _C
from onestep.nn.modules.module import Module
from onestep.nn.parameter import Parameter

Tensor = _C.Tensor


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Optional[Tensor],
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Optional[Tensor],
    bn_b: Optional[Tensor],
    transpose: bool = False,
) -> Tuple[Parameter, Parameter]:
    """The weight and bias of a convolution that does what batch norm after it did."""
    bias = _C.zeros_like(bn_rm) if conv_b is None else conv_b
    scale = _C.rsqrt(bn_rv + bn_eps)
    scale = scale if bn_w is None else bn_w * scale
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    bias = (bias - bn_rm) * scale
    bias = bias if bn_b is None else bias + bn_b
    trained = conv_w.requires_grad, conv_b is None or conv_b.requires_grad
    return Parameter((conv_w * scale.reshape(shape)).to(conv_w.dtype), trained[0]), Parameter(bias.to(conv_w.dtype), trained[1])


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Optional[Tensor], bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> Tuple[Parameter, Parameter]:
    """The weight and bias of a linear layer that does what batch norm after it did."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Module:
    """A copy of the convolution with the batch norm after it taken in; both must be in evaluation."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Module:
    """A copy of the linear layer with the batch norm after it taken in; both must be in evaluation."""
    return fuse_conv_bn_eval(linear, bn)
