#!/usr/bin/env python3
"""Single ops on tensors larger than the caches of a core, in PyTorch: the cases of `onestep bench op`."""
from common import arguments, report

ROWS, COLS, TOKENS = 2048, 1024, 512
CASES = {
    "abs": lambda: torch.abs(x),
    "add": lambda: x + y,
    "add_row": lambda: x + row,
    "add_transposed": lambda: x.t() + y.t(),
    "attention_mask": lambda: F.scaled_dot_product_attention(heads, heads, heads, attn_mask=attended),
    "bmm": lambda: heads @ heads.transpose(1, 2),
    "cat": lambda: torch.cat([x, y], 1),
    "cross_entropy": lambda: F.cross_entropy(x, cols),
    "cumsum": lambda: torch.cumsum(x, 1),
    "div": lambda: x / positive,
    "dropout": lambda: F.dropout(x, 0.1),
    "embedding": lambda: F.embedding(rows, x),
    "exp": lambda: torch.exp(x),
    "gelu": lambda: F.gelu(x),
    "index_select": lambda: torch.index_select(x, 1, cols),
    "layer_norm": lambda: F.layer_norm(x, (COLS,), row, row),
    "log": lambda: torch.log(positive),
    "logsumexp": lambda: torch.logsumexp(x, 1),
    "masked_fill": lambda: x.masked_fill(mask, 0.0),
    "max": lambda: torch.max(x, 1).values,
    "maximum": lambda: torch.maximum(x, y),
    "mean": lambda: torch.mean(x, 1),
    "mse_loss": lambda: F.mse_loss(x, y),
    "mul": lambda: x * y,
    "mv": lambda: x @ row,
    "norm": lambda: torch.linalg.vector_norm(x),
    "pow": lambda: positive**1.5,
    "pow_tensor": lambda: positive**y,
    "relu": lambda: torch.relu(x),
    "sigmoid": lambda: torch.sigmoid(x),
    "silu": lambda: F.silu(x),
    "softmax": lambda: torch.softmax(x, 1),
    "softmax_columns": lambda: torch.softmax(x, 0),
    "sqrt": lambda: torch.sqrt(positive),
    "sum": lambda: torch.sum(x),
    "sum_columns": lambda: torch.sum(x, 0),
    "tanh": lambda: torch.tanh(x),
    "transpose": lambda: x.t().contiguous(),
    "tril": lambda: torch.tril(x),
    "var": lambda: torch.var(x, 1),
    "where": lambda: torch.where(mask, x, y),
}

args = arguments(__doc__, ["torch"], [], [("op", "add", sorted(CASES)), ("mode", "fwdbwd", ["fwd", "fwdbwd"])])

import torch
import torch.nn.functional as F

torch.set_num_threads(args.threads)
torch.manual_seed(0)
x, y = (torch.randn(ROWS, COLS, requires_grad=True) for _ in range(2))
positive = (torch.randn(ROWS, COLS).abs() + 0.1).requires_grad_()
row = torch.randn(COLS, requires_grad=True)
mask = torch.randn(ROWS, COLS) > 0
rows, cols = torch.randint(0, ROWS, (ROWS,)), torch.randint(0, COLS, (ROWS,))
heads = torch.randn(8, TOKENS, 64, requires_grad=True)
attended = torch.randn(TOKENS, TOKENS) > 0
op = CASES[args.op]
dy = torch.ones(op().shape)


def call():
    if args.mode == "fwd":
        with torch.no_grad():
            op()
        return
    for leaf in (x, y, positive, row, heads):
        leaf.grad = None
    op().backward(dy)


report("op", args, call)
