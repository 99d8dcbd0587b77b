#!/usr/bin/env python3
"""What a call from Python costs, in PyTorch or in onestep: small ops and an index. small.py has whole graphs."""
from common import arguments, report

CASES = ["add", "exp", "index", "softmax", "matmul", "shape"]
args = arguments(__doc__, ["torch", "onestep_python"], [], [("case", "add", CASES)])
CALLS = 200  # timed together: one takes less than a microsecond

import torch

torch.set_num_threads(args.threads)
torch.manual_seed(0)
x, square = torch.randn(4, 3), torch.randn(4, 4)


call = {"add": lambda: x + x, "exp": lambda: x.exp(), "index": lambda: x[1:3, 0], "softmax": lambda: torch.softmax(x, -1),
        "matmul": lambda: square @ square, "shape": lambda: x.shape}[args.case]


def calls():
    for _ in range(CALLS):
        call()


report("call", args, calls, warmup=20, median_us=lambda ms: 1e3 * ms / CALLS)
