"""Writes print.json: what PyTorch prints for tensors of every kind (made with torch 2.13.0 on the CPU).

Run from this folder: python3 print.py > print.json
Each case: dtype, shape, values (repeated in order until the shape is full; "nan", "inf" and "-inf" are strings), how the
tensor is made from them ("op", empty for as it is) and the text of print(tensor).
"""
import json
import math

import torch

CASES = []


def listed(v):
    return repr(v) if isinstance(v, float) and not math.isfinite(v) else v


def case(shape, values, dtype=torch.float32, op=""):
    n = math.prod(shape)
    flat = [values[i % len(values)] for i in range(n)] if n else []
    x = torch.tensor(flat, dtype=dtype).reshape(shape)
    if op:
        x.requires_grad_()
    y = {
        "": lambda: x,
        "leaf": lambda: x,
        "exp": lambda: torch.exp(x),
        "neg": lambda: torch.neg(x),
        "softmax": lambda: torch.softmax(x, -1),
        "log_softmax": lambda: torch.log_softmax(x, -1),
        "transpose": lambda: x.transpose(0, 1),
        "select": lambda: x[0],
        "slice": lambda: x[0:1],
        "masked_fill_": lambda: x.clone().masked_fill_(x > 0, 0.0),
        "detach": lambda: x.detach(),
        "matmul": lambda: x @ x.t(),
        "linear": lambda: torch.nn.functional.linear(x, x),
        "linear with bias": lambda: torch.nn.functional.linear(x, x, x[:, 0]),
        "layer_norm": lambda: torch.nn.functional.layer_norm(x, (x.shape[-1],)),
        "cross_entropy": lambda: torch.nn.functional.cross_entropy(x, torch.zeros(len(x), dtype=torch.int64)),
        "reshape": lambda: x.reshape(-1),
        "to": lambda: x.to(torch.float64),
        "sum": lambda: x.sum(),
        "sum over dim": lambda: x.sum(0),
        "mean": lambda: x.mean(),
        "mean over dim": lambda: x.mean(0),
        "pow": lambda: x**2,
        "pow of tensors": lambda: x**x,
    }[op]()
    name = str(dtype).replace("torch.", "")
    CASES.append({"dtype": name, "shape": list(shape), "values": [listed(v) for v in values], "op": op, "text": str(y)})


inf, nan = math.inf, math.nan
f64, i64, boolean = torch.float64, torch.int64, torch.bool

# Rank 0.
for v in [0.0, -0.0, 1.0, -1.0, 3.14159265, 0.5, 1e-3, 1e-4, 9.9e-5, 1e-5, 1e8, 100000001.0, 2e8, 123456.0, 123456.5, inf, -inf, nan]:
    case([], [v])
case([], [1.0], f64)
case([], [0.1], f64)
case([], [7], i64)
case([], [-(2**62) - 1], i64)
case([], [True], boolean)
case([], [2.5], op="leaf")
case([], [2.5], f64, op="leaf")
case([], [2.5], op="exp")
# Vectors: the switch between plain, integer-like and scientific.
case([3], [1.0, 2.0, 3.0])
case([3], [1.0, 2.5, 3.0])
case([3], [-1.0, 2.0, 300.0])
case([3], [0.0, 0.0, 0.0])
case([4], [0.0, -0.0, inf, nan])
case([4], [1.0, inf, -inf, nan])
case([4], [1.5, inf, -inf, nan])
case([3], [1e-5, 1.0, 10.0])
case([3], [1.0, 1000.0, 5.0])
case([3], [1.0, 1001.0, 5.0])
case([3], [0.5, 500.0, 0.75])
case([3], [0.5, 501.0, 0.75])
case([3], [1e9, 2e9, -3e9])
case([3], [1e10, nan, 1.0])
case([3], [1e-10, inf, 1.0])
case([3], [1e-4, 2e-4, 3e-4])
case([3], [0.12345, 0.67895, -0.00005])
case([3], [1e100, 1e-100, -1e300], f64)
case([2], [1e-45, 3.4e38])
case([1], [42.0])
case([0], [1.0])
case([0], [1.0], f64)
case([0], [1], i64)
case([0, 3], [1.0])
case([0, 3], [1.0], f64)
case([2, 0, 4], [1], i64)
case([2, 0], [True], boolean)
case([0, 2], [1.0], op="leaf")
# Lines are at most 80 wide.
case([30], [0.25, -1.5, 3.75, 10.125])
case([100], list(range(-50, 50)), i64)
case([26], [1e-7, 2.0])
case([3, 25], [0.5, 0.25, 123.0])
case([12], [True, False, False], boolean)
case([40], [True, False, False], boolean)
case([2, 3], [True, False], boolean)
# Brackets by rank.
case([2, 3], [0.43, 0.15, 0.89, 0.55, 0.87, 0.66])
case([2, 3], [1, -20, 300], i64)
case([2, 3, 4], [0.125 * i for i in range(24)])
case([2, 2, 2, 2], [float(i) for i in range(16)])
case([1, 2, 1, 2, 1, 2], [0.1, -0.2, 0.3])
case([3, 1], [1.0, 2.0, 0.5], f64)
case([2, 1, 30], [0.25, -1.5])
# Summaries above 1000 elements.
case([1000], list(range(1000)), i64)
case([1001], list(range(1001)), i64)
case([1001], [0.5, -2.25, 8.0])
case([100, 11], [0.5, -2.25, 8.0, 1.125])
case([7, 200], [1.0, 2.0, 3.0])
case([6, 200], [1.5, 2.0, 3.0])
case([2, 7, 100], list(range(13)), i64)
case([2, 600], [True, False, False], boolean)
case([10, 10, 11], [0.001, 100.0, 3.0])
case([8, 2, 8, 9], [0.5, -1.0], f64)
case([1200, 1], [0.5, -1.0])
case([1, 1200], [0.5, -1.0], f64)
# The graph in the last line.
case([2, 2], [1.0, 2.0], op="leaf")
case([2, 2], [1.5, 2.0], f64, op="leaf")
case([2, 3], [0.1, 0.2, 0.9], op="softmax")
case([2, 3], [0.1, 0.2, 0.9], op="log_softmax")
case([2, 3], [0.1, 0.2, 0.9], op="transpose")
case([2, 3], [0.1, -0.2, 0.9], f64, op="masked_fill_")
case([2, 3], [0.1, -0.2, 0.9], op="detach")
case([2, 3], [0.1, 0.2, 0.9], op="select")
case([3], [0.1, 0.2, 0.9], op="select")
case([2, 3], [0.1, 0.2, 0.9], op="slice")
case([6], [0.1, -0.2, 0.9], op="neg")
case([7], [0.1, -0.2, 0.9], op="neg")
case([8], [0.1, -0.2, 0.9], f64, op="exp")
for op in ["matmul", "linear", "linear with bias", "layer_norm", "cross_entropy", "reshape", "to", "sum", "sum over dim", "mean",
           "mean over dim", "pow", "pow of tensors"]:
    case([2, 3], [0.1, 0.2, 0.9, 0.4], op=op)
for n in range(3, 9):
    case([n], [0.1, 0.2], f64, op="leaf")
    case([n, 2], [10.1, 0.2], f64, op="neg")

head = json.dumps({"torch": torch.__version__, "made_by": "print.py"})
print(head[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(c) for c in CASES) + "\n]}")
