#!/usr/bin/env python3
"""A 2-d convolution with bias of square images in PyTorch: the flags of `onestep bench conv`."""
from common import arguments, report

args = arguments(__doc__, ["torch"], [("batch", 32), ("in", 16), ("out", 16), ("size", 32), ("kernel", 3), ("stride", 1),
                                      ("padding", 1), ("first", 0)], [("mode", "fwdbwd", ["fwd", "fwdbwd"])])

import torch
import torch.nn.functional as F

torch.set_num_threads(args.threads)
torch.manual_seed(0)
channels = getattr(args, "in")
x = torch.randn(args.batch, channels, args.size, args.size, requires_grad=not args.first)
weight = torch.randn(args.out, channels, args.kernel, args.kernel, requires_grad=True)
bias = torch.randn(args.out, requires_grad=True)
dy = torch.ones_like(F.conv2d(x, weight, bias, args.stride, args.padding))


def call():
    if args.mode == "fwd":
        with torch.no_grad():
            F.conv2d(x, weight, bias, args.stride, args.padding)
        return
    for leaf in (x, weight, bias):
        leaf.grad = None
    F.conv2d(x, weight, bias, args.stride, args.padding).backward(dy)


report("conv", args, call, warmup=5)
