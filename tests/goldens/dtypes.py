"""Writes dtypes.json: promotion, conversions, arithmetic, random draws and printing of all dtypes (PyTorch 2.13.0+cpu, x86).

Run from this folder: python3 dtypes.py > dtypes.json
"""
import json
import math

import numpy as np
import torch
import torch.nn.functional as F

NAMES = ["float32", "float64", "int64", "bool", "int32", "uint8", "float16", "bfloat16"]
DTYPES = [getattr(torch, name) for name in NAMES]
HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
NUMBERS = [True, 2, 2.5]


def name(dtype):
    return str(dtype).removeprefix("torch.")


def plain(x):
    """Nested lists, with text for what JSON cannot say."""
    if isinstance(x, list):
        return [plain(part) for part in x]
    if isinstance(x, float) and not math.isfinite(x):
        return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
    return x


def values(x):
    return plain((x.double() if x.is_floating_point() else x.long()).tolist())


def fnv1a(array):
    result = 0xCBF29CE484222325
    for byte in array.tobytes():
        result = (result ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{result:016x}"


def one(dtype, rank):
    return torch.ones([1] * rank, dtype=dtype)


def table(rank_a, rank_b):
    return [[name(torch.result_type(one(a, rank_a), one(b, rank_b))) for b in DTYPES] for a in DTYPES]


promotion = {
    "types": [[name(torch.promote_types(a, b)) for b in DTYPES] for a in DTYPES],
    "vectors": table(1, 1), "vector and rank 0": table(1, 0), "rank 0 and vector": table(0, 1), "rank 0": table(0, 0),
    "vector and number": [[name(torch.result_type(one(a, 1), n)) for n in NUMBERS] for a in DTYPES],
    "rank 0 and number": [[name(torch.result_type(one(a, 0), n)) for n in NUMBERS] for a in DTYPES],
}

# Every half as float32; and float32 numbers on both sides of every number with few bits, ties among them, as halves.
halves = {}
for half, dtype in HALVES.items():
    wide = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype).float()
    shift = 12 if half == "float16" else 15
    near = (np.arange(1 << (32 - shift), dtype=np.uint32) << shift)[:, None] + np.array([-1, 0, 1]).astype(np.uint32)
    rounded = torch.from_numpy(near.reshape(-1).view(np.float32)).to(dtype)
    bits = torch.where(rounded.isnan(), torch.tensor(0x7FFF, dtype=torch.int16), rounded.view(torch.int16))
    halves[half] = {"to float32": fnv1a(torch.where(wide.isnan(), torch.nan, wide).numpy()), "from float32": fnv1a(bits.numpy())}

FLOATS = [0.0, -0.0, 1.5, -1.5, 2.5, 255.7, 256.0, -3.0, 65519.0, 65520.0, 1e-7, 3e9, -3e9, 1e20, math.inf, -math.inf, math.nan]
INTEGERS = [0, 1, -1, 100, 255, 256, -129, 2049, 65520, 2147483647, 2147483648, -2147483649, 9007199254740993]
SOURCES = {
    "float32": torch.tensor(FLOATS), "float64": torch.tensor(FLOATS, dtype=torch.float64),
    "float16": torch.tensor(FLOATS).half(), "bfloat16": torch.tensor(FLOATS).bfloat16(), "int64": torch.tensor(INTEGERS),
    "int32": torch.tensor([0, 1, -1, 100, 255, 256, -129, 2049, 65520, 2147483647, -2147483648], dtype=torch.int32),
    "uint8": torch.tensor([0, 1, 127, 128, 255], dtype=torch.uint8), "bool": torch.tensor([False, True]),
}
conversions = [{"from": source, "values": values(x), "to": {target: values(x.to(getattr(torch, target))) for target in NAMES}}
               for source, x in SOURCES.items()]

OPS = {  # of a [3, 5] and b [3, 5]
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "add number": lambda a, b: a + 0.1, "mul number": lambda a, b: a * 0.1, "pow": lambda a, b: a.abs() ** 1.7,
    "neg": lambda a, b: -a, "exp": lambda a, b: a.exp(), "tanh": lambda a, b: a.tanh(), "sqrt": lambda a, b: a.abs().sqrt(),
    "relu": lambda a, b: a.relu(), "sum": lambda a, b: a.sum(), "sum over dim": lambda a, b: a.sum(1),
    "mean": lambda a, b: a.mean(0), "var": lambda a, b: a.var(1), "softmax": lambda a, b: a.softmax(-1),
    "matmul": lambda a, b: a @ b.t(), "amax": lambda a, b: a.amax(1), "layer_norm": lambda a, b: F.layer_norm(a, (5,)),
    "linear": lambda a, b: F.linear(a, b, b[:, 0]), "maximum": lambda a, b: torch.maximum(a, b),
    "cumsum": lambda a, b: a.cumsum(1), "mse_loss": lambda a, b: F.mse_loss(a, b),
    "cross_entropy": lambda a, b: F.cross_entropy(a, torch.tensor([1, 0, 4])), "cat": lambda a, b: torch.cat([a, b.float()]),
    "where": lambda a, b: torch.where(a > b, a, b), "used twice": lambda a, b: a * b + a,
}
arithmetic = []
for half, dtype in HALVES.items():
    torch.manual_seed(1)
    a, b = torch.randn(3, 5).to(dtype), torch.randn(3, 5).to(dtype)
    for op, f in OPS.items():
        x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
        z = f(x, y)
        dz = (((torch.arange(z.numel()) * 37 + 11) % 127 - 63) / 64).reshape(z.shape).to(z.dtype)
        z.backward(dz)
        arithmetic.append({"op": op, "dtype": half, "a": values(a), "b": values(b), "dtype of result": name(z.dtype),
                           "result": values(z.detach()), "gradients": [values(x.grad), None if y.grad is None else values(y.grad)]})

U, V = [200, 100, 3, 255], [100, 0, 7, 2]
INTEGER_OPS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / (b + 1),
    "neg": lambda a, b: -a, "number": lambda a, b: a + 300, "negative number": lambda a, b: a * -1, "float": lambda a, b: a * 0.5,
    "lt": lambda a, b: a < 300, "eq": lambda a, b: a == -1, "gt": lambda a, b: a > b, "pow": lambda a, b: a**3,
    "sum": lambda a, b: a.sum(), "prod": lambda a, b: a.prod(), "cumsum": lambda a, b: a.cumsum(0), "amax": lambda a, b: a.amax(0),
    "dot": lambda a, b: a @ b, "exp": lambda a, b: (b / 50).exp(), "abs": lambda a, b: a.abs(), "clamp": lambda a, b: a.clamp(5, 150),
    "in place": lambda a, b: a.clone().add_(b), "in place, wider": lambda a, b: a.clone().mul_(torch.tensor([3, 4, 5, 6])),
    "with rank 0": lambda a, b: a + torch.tensor(7), "with int64": lambda a, b: a + torch.tensor([1, 2, 3, 4]),
    "with half": lambda a, b: a + torch.tensor([0.5, 1, 2, 3], dtype=torch.float16),
}
integers = []
for dtype in (torch.uint8, torch.int32):
    a, b = torch.tensor(U, dtype=dtype), torch.tensor(V, dtype=dtype)
    for op, f in INTEGER_OPS.items():
        y = f(a, b)
        integers.append({"op": op, "dtype": name(dtype), "dtype of result": name(y.dtype), "result": values(y)})

random = []
for half, dtype in HALVES.items():
    for n in (5, 16, 20, 40, 300):
        draws = {"rand": lambda: torch.rand(n, dtype=dtype), "randn": lambda: torch.randn(n, dtype=dtype),
                 "uniform_": lambda: torch.empty(n, dtype=dtype).uniform_(-0.3, 1.7),
                 "normal_": lambda: torch.empty(n, dtype=dtype).normal_(0.3, 1.7)}
        for kind, draw in draws.items():
            torch.manual_seed(7)
            drawn = draw()
            random.append({"kind": kind, "dtype": half, "n": n, "hash": fnv1a(drawn.view(torch.int16).numpy()),
                           "first": values(drawn[:3]), "next": torch.rand(1).item()})

texts = []
for dtype in DTYPES[4:]:
    for x in ([1, 2, 3], [[0, 100], [255, 7]], 5, [], [[], []], [0.1, 2, 250]):
        texts.append({"dtype": name(dtype), "values": plain(x), "text": str(torch.tensor(x, dtype=dtype))})

print(json.dumps({"names": NAMES, "promotion": promotion, "halves": halves, "conversions": conversions,
                  "arithmetic": arithmetic, "integers": integers, "random": random, "texts": texts}, separators=(",", ":")))
