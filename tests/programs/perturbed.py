"""What rounding decides: programs under PyTorch whose inexact ops get operands, and give results, that are some units in the last
place away. A sum of floats in another order is the exact sum of such operands, and a function of C's library lies so close to the
true value. Elements that come out otherwise by more than the tolerance are PyTorch's own rounding, and no result to compare with."""
import math

import torch
from torch_programs import Machine, listed, operation, want

RUNS, ULPS = 8, 4
TOLERANCE = {"float64": 1e-6, "float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}  # interpreter.cpp's
PRODUCTS = {"matmul", "linear", "addmm", "scaled_dot_product_attention"}  # in PyTorch the sign of a 0 depends on their shapes
SUMS = {"sum", "mean", "var", "std", "prod", "cumsum", "cumprod", "softmax", "log_softmax",
        "logsumexp", "logcumsumexp", "layer_norm", "cross_entropy", "mse_loss", "vector_norm", "normalize"}
FUNCTIONS = {"exp", "tanh", "sigmoid", "sin", "cos", "gelu", "silu", "log", "rsqrt", "erf", "expm1", "log1p", "exp2", "softplus", "elu", "tan", "asinh",
             "atan", "sinh", "pow", "atan2", "rdiv", "glu"}


class Perturbed(Machine):
    """A running program whose inexact ops are off by up to ULPS units in the last place; its graph is the usual one."""

    def __init__(self, seed):
        super().__init__(quirks=False)
        self.random = torch.Generator().manual_seed(seed)

    def moved(self, x):
        """A copy, each element away by a random part of ULPS units."""
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return x.clone() if isinstance(x, torch.Tensor) else x
        units = ULPS * (2 * torch.rand(x.shape, generator=self.random, dtype=torch.float64) - 1)
        return (x.detach().double() * (1 + torch.finfo(x.dtype).eps * units)).to(x.dtype)

    def call(self, op, args, kwargs):
        if op.rstrip("_") not in PRODUCTS | SUMS | FUNCTIONS:
            return super().call(op, args, kwargs)
        with torch.no_grad():
            away = operation(op)(*map(self.moved, args), **kwargs)
            if op in PRODUCTS and away.is_floating_point():
                away = torch.where(away == 0, away.copysign(torch.rand(away.shape, generator=self.random) - 0.5), away)
        results = super().call(op, args, kwargs)
        for result, other in zip(listed([results]), listed([away])):
            result.data.copy_(self.moved(other))  # .data: without a trace in the graph
        return results


def apart(a, b, tolerance, largest):
    a, b = float(a), float(b)
    if not (math.isfinite(a) and math.isfinite(b)):
        return not (a == b or (math.isnan(a) and math.isnan(b)))
    return abs(a - b) > tolerance * (abs(a) + largest / 10)


def without_moving(values, others, dtype):
    """The values; None for those that one of the others is apart from."""
    if values is None:
        return None
    finite = [abs(float(v)) for v in values if math.isfinite(float(v))]
    tolerance, largest = TOLERANCE.get(dtype, 0), max(finite + [1])
    return [None if any(apart(v, other[i], tolerance, largest) for other in others if other) else v for i, v in enumerate(values)]


def decided(steps, expected):
    """`expected`, with None for the elements that rounding decides. Runs that are refused elsewhere show nothing."""
    runs = [want(steps, machine=Perturbed(seed)) for seed in range(RUNS)]
    runs = [run["tensors"] for run in runs if run["status"] == expected["status"]]
    tensors = {}
    for name, x in expected["tensors"].items():
        tensors[name] = x
        others = [run[name] for run in runs if run[name] not in (None, "unusable")]
        if x not in (None, "unusable"):
            tensors[name] = [*x[:2], without_moving(x[2], [o[2] for o in others], x[0]), x[3], without_moving(x[4], [o[4] for o in others], x[0]), x[5]]
    return expected | {"tensors": tensors}
