"""PyTorch's own samples of its operators (op_db) as programs in the format of interpreter.h."""
import contextlib
import io

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch_programs import CALLS, dtype_name, operation, number, want

DTYPES = [torch.float32, torch.float64, torch.int64, torch.bool, torch.int32, torch.uint8, torch.float16, torch.bfloat16]
RANDOM = {"dropout", "multinomial", "bernoulli", "rand_like", "randn_like", "randint_like"}
NAMES = {"__getitem__": "index", "linalg.vector_norm": "vector_norm", "linalg.diagonal": "diagonal", "special.erf": "erf",
         "nn.functional.unfold": "im2col", "nn.functional.fold": "col2im"}
# The engine's order of the arguments (input, *args) of samples where PyTorch's test has another.
ORDER = {"where": lambda x, c, y: [c, x, y], "einsum": lambda x, e: [e, x], "embedding": lambda w, i: [i, w]}
NOISE = {"layer_norm": 1e-3}  # of PyTorch's gradient over one element, which is 0
DIGITS = 5  # of the values that samples are made of
LARGEST = 3000  # elements: what a sample may hold


class Inexpressible(Exception):
    """An argument that the format does not have: a complex number, a device, a generator."""


def engine_name(op):
    return NAMES.get(op.name, op.name.removeprefix("nn.functional."))


def rounded(x):
    if not x.is_floating_point():
        return x
    values = [float(f"%.{DIGITS}g" % v) for v in x.detach().double().reshape(-1).tolist()]
    return torch.tensor(values, dtype=torch.float64).reshape(x.shape)


class Builder:
    def __init__(self):
        self.steps, self.elements = [], 0

    def value(self, v):
        if isinstance(v, torch.Tensor):
            return self.tensor(v)
        if isinstance(v, slice):
            return [v.start, v.stop, v.step]
        if v is Ellipsis:
            return "..."
        if isinstance(v, torch.dtype):
            return dtype_name(v)
        if isinstance(v, (list, tuple)):
            return [self.value(i) for i in v]
        if isinstance(v, float):
            return float(v) if v == v and abs(v) != float("inf") else number(v)
        if v is None or isinstance(v, (bool, int, str)):
            return v
        raise Inexpressible(str(type(v)))

    def tensor(self, x):
        if x.dtype.is_complex or x.layout != torch.strided or x.is_conj() or x.is_neg():
            raise Inexpressible("a complex or sparse tensor")
        self.elements += x.numel()
        if self.elements > LARGEST:
            raise Inexpressible("a sample of many elements")
        values = [number(v) for v in rounded(x).reshape(-1).tolist()] if x.is_floating_point() else [int(v) for v in x.reshape(-1).tolist()]
        keywords = {} if x.is_contiguous() else {"strides": list(x.stride())}
        name = f"i{len(self.steps)}"
        self.steps.append([name, "tensor", [dtype_name(x.dtype), list(x.shape), values, x.requires_grad]] + ([keywords] if keywords else []))
        return "$" + name


def program_of(name, call, sample, in_place=False, refused=False):
    """The steps of one sample: its tensors, the call, a backward pass from each result that has one."""
    b = Builder()
    args = [b.value(v) for v in (sample.input, *sample.args)]
    keywords = {k: b.value(v) for k, v in sample.kwargs.items()}
    if name == "index":
        items = sample.args[0] if isinstance(sample.args[0], tuple) else (sample.args[0],)
        args = [args[0], [b.value(torch.tensor(v) if isinstance(v, list) else v) for v in items]]
    if name in ORDER and not refused:
        args, call = ORDER[name](*args), None
    if in_place:
        b.steps.append(["c", "clone", [args[0]]])
        args[0] = "$c"
    b.steps.append([["y"], name, args] + ([keywords] if keywords else []))
    trial = want(b.steps, overrides={name: call} if call else {}, keep=True, quirks=False)
    if trial["status"][-1] != "." and not refused:
        raise Inexpressible("PyTorch does not take it in this form")
    results = trial["results"]
    b.steps[-1][0] = [f"y{i}" for i in range(len(results))] or ["y0"]
    for i, y in enumerate(results):
        if isinstance(y, torch.Tensor) and y.requires_grad:
            b.steps.append(["", "backward", [f"$y{i}", "weights", True]])
    return b.steps


def quietly(samples):
    """The samples; op_db prints and fails where a dtype has none."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            yield from samples
        except Exception:  # noqa: BLE001: some of PyTorch's own generators fail for some dtypes
            return


def samples(op, dtype):
    grad = dtype.is_floating_point and op.supports_autograd
    try:
        for sample in quietly(op.sample_inputs("cpu", dtype, requires_grad=grad)):
            yield "sample", sample
            yield "strided", sample.noncontiguous()
        for sample in quietly(op.reference_inputs("cpu", dtype, requires_grad=grad)):
            yield "reference", sample
    except Exception:  # noqa: BLE001
        return


def calls(operations, wanted=()):
    """(name in the engine, OpInfo, function, whether in place) of every op that the engine has."""
    for op in op_db:
        name = engine_name(op)
        if wanted and name not in wanted and name + "_" not in wanted:
            continue
        if name in RANDOM:
            continue
        if name in operations and name.endswith("_"):
            yield name, op, operation(name), True
        elif name in operations:
            yield name, op, CALLS.get(name) or (operation(name) if name in ORDER else op.op), False
        inplace = op.inplace_variant
        if inplace is not None and name + "_" in operations:
            yield name + "_", op, CALLS.get(name + "_", inplace), True


def programs(name, op, call, in_place, digits=None):
    """(kind, program) of every sample; a program without `want` is one that the format does not have."""
    absolute = {"absolute": NOISE[name]} if name in NOISE else {}
    for dtype in DTYPES:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        for kind, sample in samples(op, dtype):
            if (in_place and kind == "reference") or sample.kwargs.get("dropout_p"):
                continue
            try:
                steps = program_of(name, call, sample, in_place)
            except Inexpressible:
                yield "inexpressible", None
                continue
            yield kind, {"op": name, "steps": steps, "want": want(steps, digits, overrides={name: call}, quirks=False)} | absolute


def error_programs(name, op, call, in_place):
    """What PyTorch's test says must be refused."""
    if in_place or op.error_inputs_func is None:
        return
    for error in quietly(op.error_inputs("cpu")):
        try:
            steps = program_of(name, call, error.sample_input, refused=True)
        except (Inexpressible, RuntimeError, TypeError):
            continue
        expected = want(steps, overrides={name: call}, quirks=False)
        if "x" in expected["status"]:
            yield {"op": name, "steps": steps, "want": expected}
