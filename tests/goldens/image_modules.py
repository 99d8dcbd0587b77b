"""Writes image_modules.json: how PyTorch prints, names, initialises and runs convolutions, pooling and the normalisations of images.

Run with torch 2.13.0 (CPU): python3 image_modules.py > image_modules.json
"""

import json
import sys

import torch
from torch import nn


def flat(t, digits=7):
    return [float("%.*g" % (digits, v)) for v in t.detach().flatten().tolist()]


IMAGES, SIGNALS, ROWS = (2, 2, 4, 5), (2, 2, 7), (5, 2)
BUILD = {
    "Conv1d": (SIGNALS, lambda: nn.Conv1d(2, 3, 3)),
    "Conv1d same": (SIGNALS, lambda: nn.Conv1d(2, 2, 4, padding="same", bias=False)),
    "Conv2d": (IMAGES, lambda: nn.Conv2d(2, 3, 3, 2, 1)),
    "Conv2d groups": (IMAGES, lambda: nn.Conv2d(2, 4, (2, 3), 1, (0, 2), (1, 2), 2, False)),
    "Conv1d circular": (SIGNALS, lambda: nn.Conv1d(2, 3, 3, padding=2, padding_mode="circular")),
    "Conv1d replicate same": (SIGNALS, lambda: nn.Conv1d(2, 2, 4, padding="same", dilation=2, bias=False, padding_mode="replicate")),
    "Conv2d reflect": (IMAGES, lambda: nn.Conv2d(2, 3, 3, 2, (1, 2), padding_mode="reflect")),
    "ConvTranspose1d": (SIGNALS, lambda: nn.ConvTranspose1d(2, 3, 3, 2)),
    "ConvTranspose2d": (IMAGES, lambda: nn.ConvTranspose2d(2, 4, 3, 2, 1, 1, 2)),
    "BatchNorm1d": (ROWS, lambda: nn.BatchNorm1d(2)),
    "BatchNorm1d signals": (SIGNALS, lambda: nn.BatchNorm1d(2, 1e-3, 0.3, False)),
    "BatchNorm2d": (IMAGES, lambda: nn.BatchNorm2d(2)),
    "BatchNorm2d cumulative": (IMAGES, lambda: nn.BatchNorm2d(2, momentum=None)),
    "BatchNorm2d without statistics": (IMAGES, lambda: nn.BatchNorm2d(2, track_running_stats=False)),
    "GroupNorm": (IMAGES, lambda: nn.GroupNorm(1, 2)),
    "InstanceNorm2d": (IMAGES, lambda: nn.InstanceNorm2d(2)),
    "InstanceNorm2d statistics": (IMAGES, lambda: nn.InstanceNorm2d(2, affine=True, track_running_stats=True)),
    "MaxPool1d": (SIGNALS, lambda: nn.MaxPool1d(3, 2, 1)),
    "MaxPool2d": (IMAGES, lambda: nn.MaxPool2d(2)),
    "AvgPool1d": (SIGNALS, lambda: nn.AvgPool1d(2)),
    "AvgPool2d": (IMAGES, lambda: nn.AvgPool2d((2, 3), 1, (1, 1))),
    "AdaptiveAvgPool1d": (SIGNALS, lambda: nn.AdaptiveAvgPool1d(3)),
    "AdaptiveAvgPool2d": (IMAGES, lambda: nn.AdaptiveAvgPool2d((3, None))),
    "AdaptiveMaxPool1d": (SIGNALS, lambda: nn.AdaptiveMaxPool1d(3)),
    "AdaptiveMaxPool2d": (IMAGES, lambda: nn.AdaptiveMaxPool2d(2)),
    "Unfold": (IMAGES, lambda: nn.Unfold(2, padding=1, stride=2)),
    "Unfold dims": (IMAGES, lambda: nn.Unfold((2, 3))),
    "Fold": ((2, 8, 6), lambda: nn.Fold((3, 4), 2)),
    "Hardshrink": (ROWS, lambda: nn.Hardshrink()),
    "Softshrink": (ROWS, lambda: nn.Softshrink(0.25)),
    "Flatten": (IMAGES, lambda: nn.Flatten()),
    "Unflatten": (IMAGES, lambda: nn.Unflatten(1, (2, -1))),
    "ZeroPad2d": (IMAGES, lambda: nn.ZeroPad2d(1)),
    "ConstantPad1d": (SIGNALS, lambda: nn.ConstantPad1d((2, 0), 3.5)),
    "ConstantPad2d": (IMAGES, lambda: nn.ConstantPad2d((1, -2, 0, 1), 0.5)),
    "ReflectionPad1d": (SIGNALS, lambda: nn.ReflectionPad1d(2)),
    "ReflectionPad2d": (IMAGES, lambda: nn.ReflectionPad2d((1, 2, 0, 3))),
    "ReplicationPad1d": (SIGNALS, lambda: nn.ReplicationPad1d(2)),
    "ReplicationPad2d": (IMAGES, lambda: nn.ReplicationPad2d((1, 2, 0, 3))),
}


def run(shape, build):
    """seed 7: x = randn(shape), then the module, then two training passes (the second with 2 x + 1), then an evaluation pass."""
    torch.manual_seed(7)
    x = torch.randn(shape, requires_grad=True)
    module = build()
    result = {"shape": shape, "repr": repr(module), "keys": list(module.state_dict())}
    result["parameters"] = {k: flat(p, 9) for k, p in module.named_parameters()}
    y = module(x)
    (y * y * torch.linspace(0, 1, y.numel()).reshape(y.shape)).sum().backward()
    result["y"] = flat(y)
    result["x_grad"] = flat(x.grad)
    result["grads"] = {k: flat(p.grad) for k, p in module.named_parameters()}
    if list(module.buffers()):
        module(2 * x.detach() + 1)
        result["buffers"] = {k: flat(b) for k, b in module.named_buffers()}
        module.eval()
        result["y_eval"] = flat(module(x))
    return result


torch.set_num_threads(1)
result = {"torch": torch.__version__, "runs": {name: run(*args) for name, args in BUILD.items()}}
json.dump(result, sys.stdout, separators=(",", ":"))
print()
