"""Writes saved.json: what PyTorch (2.13.0+cpu) lets a program do between an op and its backward pass.

Run from this folder: python3 saved.py > saved.json
Each op takes a [3, 4], b [3, 4] and row [4], of which those in the key require grad, and has a list of
  a, b, row  where that input may be changed in place before backward
  out        where the result may be
  again      where backward may run twice without retain_graph
Ops whose result is a view are left out: a write to it is one to the input.
"""
import json

import torch
import torch.nn.functional as F

index = torch.tensor([2, 0, 2])
OPS = {
    "add": (lambda a, b: a + b, "ab"), "sub": (lambda a, b: a - b, "ab"), "mul": (lambda a, b: a * b, "ab"),
    "div": (lambda a, b: a / b, "ab"), "pow": (lambda a, b: a**b, "ab"), "maximum": (torch.maximum, "ab"),
    "minimum": (torch.minimum, "ab"), "add_number": (lambda a: a + 2.0, "a"), "number_minus": (lambda a: 2.0 - a, "a"),
    "mul_number": (lambda a: a * 2.0, "a"), "div_number": (lambda a: a / 2.0, "a"), "number_over": (lambda a: 2.0 / a, "a"),
    "pow_0": (lambda a: a**0, "a"), "pow_2": (lambda a: a**2, "a"), "pow_3": (lambda a: a**3, "a"), "neg": (torch.neg, "a"),
    "exp": (torch.exp, "a"), "log": (torch.log, "a"), "sqrt": (torch.sqrt, "a"), "rsqrt": (torch.rsqrt, "a"),
    "sin": (torch.sin, "a"), "cos": (torch.cos, "a"), "tanh": (torch.tanh, "a"), "sigmoid": (torch.sigmoid, "a"),
    "abs": (torch.abs, "a"), "relu": (torch.relu, "a"), "gelu": (F.gelu, "a"), "silu": (F.silu, "a"),
    "gelu_tanh": (lambda a: F.gelu(a, approximate="tanh"), "a"), "where": (lambda a, b: torch.where(torch.tensor(True), a, b), "ab"),
    "masked_fill": (lambda a: a.masked_fill(torch.tensor([True, False, True, False]), 0.5), "a"), "tril": (torch.tril, "a"),
    "triu": (torch.triu, "a"), "clone": (torch.clone, "a"), "to": (torch.Tensor.double, "a"),
    "sum": (torch.sum, "a"), "sum_dim": (lambda a: a.sum(1), "a"), "mean": (torch.mean, "a"), "mean_dim": (lambda a: a.mean(0), "a"),
    "var": (torch.var, "a"), "var_dim": (lambda a: a.var(1), "a"), "amax": (lambda a: a.amax(1), "a"), "max": (torch.max, "a"),
    "max_dim": (lambda a: a.max(1)[0], "a"), "cumsum": (lambda a: a.cumsum(1), "a"), "softmax": (lambda a: a.softmax(1), "a"),
    "softmax_0": (lambda a: a.softmax(0), "a"), "log_softmax": (lambda a: a.log_softmax(1), "a"),
    "log_softmax_0": (lambda a: a.log_softmax(0), "a"), "logsumexp": (lambda a: a.logsumexp(1), "a"),
    "matmul": (lambda a, b: a @ b.t(), "ab"), "linear": (lambda a, b: F.linear(a, b), "ab"),
    "linear_bias": (lambda a, row: F.linear(a, torch.ones(4, 4), row), ("a", "row")), "dot": (lambda a, b: a[0].dot(b[0]), "ab"),
    "einsum": (lambda a, b: torch.einsum("ij,kj->ik", a, b), "ab"), "cat": (lambda a, b: torch.cat([a, b]), "ab"),
    "cat_many": (lambda a, b: torch.cat([a, b] * 9), "ab"), "stack": (lambda a, b: torch.stack([a, b]), "ab"),
    "index_select": (lambda a: a.index_select(0, index), "a"), "gather": (lambda a: a.gather(1, index.view(3, 1)), "a"),
    "embedding": (lambda a: F.embedding(index, a), "a"), "layer_norm": (lambda a, row: F.layer_norm(a, (4,), row), ("a", "row")),
    "layer_norm_plain": (lambda a: F.layer_norm(a, (4,)), "a"),
    "layer_norm_bias": (lambda a, row: F.layer_norm(a, (4,), torch.ones(4), row), ("a", "row")),
    "cross_entropy": (lambda a: F.cross_entropy(a, index), "a"),
    "cross_entropy_sum": (lambda a: F.cross_entropy(a, index, reduction="sum", label_smoothing=0.1), "a"),
    "cross_entropy_none": (lambda a: F.cross_entropy(a, index, reduction="none"), "a"),
    "nll_loss": (lambda a: F.nll_loss(a, index), "a"), "mse_loss": (lambda a, b: F.mse_loss(a, b), "ab"),
    "mse_loss_none": (lambda a, b: F.mse_loss(a, b, reduction="none"), "ab"),
    "attention": (lambda a, b: F.scaled_dot_product_attention(a[None, None], b[None, None], b[None, None]), "ab"),
}
VALUES = {"a": torch.arange(1.0, 13).reshape(3, 4) / 8, "b": torch.arange(12.0, 0, -1).reshape(3, 4) / 8, "row": torch.arange(1.0, 5)}


def runs(op, names, needs, written, again):
    inputs = {name: VALUES[name].clone() for name in names}
    for name in needs:
        inputs[name] = inputs[name].requires_grad_().clone()
    out = op(*inputs.values())
    if written:
        (out if written == "out" else inputs[written]).add_(1.0)
    try:
        for _ in range(1 + again):
            out.backward(torch.ones_like(out))
    except RuntimeError:
        return False
    return True


def allowed(op, names, needs):
    writes = [name for name in [*names, "out"] if runs(op, names, needs, name, False)]
    return writes + ["again"] * runs(op, names, needs, None, True)


rows = []
for name, (op, names) in OPS.items():
    subsets = [list(names)] + ([[n] for n in names] if len(names) > 1 else [])
    rows += [f'  "{name} {" ".join(needs)}": {json.dumps(allowed(op, names, needs))}' for needs in subsets]
print('{"made_by": "saved.py", "torch": "%s", "ops": {\n' % torch.__version__ + ",\n".join(rows) + "\n}}")
