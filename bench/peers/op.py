#!/usr/bin/env python3
"""Single ops on tensors larger than the caches of a core, in PyTorch: the cases of `onestep bench op`. With `--op -` those of the
lines `OP MODE` of the standard input, a result a line."""
import sys

from common import arguments, report
from op_cases import CASES

ROWS, COLS, TOKENS = 2048, 1024, 512
args = arguments(__doc__, ["torch"], [], [("op", "add", ["-", *sorted(CASES)]), ("mode", "fwdbwd", ["fwd", "fwdbwd"])])

import torch
import torch.nn.functional as F

torch.set_num_threads(args.threads)
torch.manual_seed(0)
x, y = (torch.randn(ROWS, COLS, requires_grad=True) for _ in range(2))
positive = (torch.randn(ROWS, COLS).abs() + 0.1).requires_grad_()
unit = torch.randn(ROWS, COLS).sigmoid().requires_grad_()
targets, signs = torch.randn(ROWS, COLS).sigmoid(), torch.randn(ROWS, COLS).sign()
row = torch.randn(COLS, requires_grad=True)
mask = torch.randn(ROWS, COLS) > 0
rows, cols = torch.randint(0, ROWS, (ROWS,)), torch.randint(0, COLS, (ROWS,))
heads = torch.randn(8, TOKENS, 64, requires_grad=True)
attended = torch.randn(TOKENS, TOKENS) > 0
order, ordered = torch.randperm(ROWS), torch.randn(COLS).sort().values
places = torch.randint(0, COLS, (ROWS, COLS))
images, channels = torch.randn(32, 64, 32, 32, requires_grad=True), torch.randn(64, requires_grad=True)
scratch = torch.randn(ROWS, COLS)  # what ops write to
doubles = torch.randn(ROWS // 2, COLS).double().requires_grad_()
halves = torch.randn(ROWS, COLS).bfloat16().requires_grad_()
pictures, patches = torch.randn(8, 3, 224, 224), torch.randn(64, 3, 16, 16, requires_grad=True)
columns = torch.randint(0, COLS, (COLS,))
labels, label_counts, frame_counts = torch.randint(1, COLS, (16, 20)), torch.full((16,), 20), torch.full((16,), 128)


def time_op():
    op = eval(f"lambda: {CASES[args.op]}")
    y = op()
    dy = torch.ones(y.shape, dtype=y.dtype)

    def call():
        if args.mode == "fwd":
            with torch.no_grad():
                op()
            return
        for leaf in (x, y, positive, unit, row, heads, images, channels, doubles, halves, patches):
            leaf.grad = None
        op().backward(dy)

    report("op", args, call)


if args.op == "-":
    for line in sys.stdin:
        args.op, args.mode = line.split()
        try:
            time_op()
        except Exception as error:  # one that this version does not have
            print("null", flush=True)
            print(f"op.py: {args.op}: {error}", file=sys.stderr)
else:
    time_op()
