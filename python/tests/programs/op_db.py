"""PyTorch's operator samples (op_db) through the Python package: equal, refused, different; counts by op.

python op_db.py COUNTS.json [NAME...]: needs PyTorch and the package in one process.
"""
from __future__ import annotations

import contextlib
import io
import json
import sys
from collections import Counter

import onestep
import onestep.nn
import torch
from torch.testing._internal.common_methods_invocations import op_db

DTYPES = [torch.float32, torch.float64, torch.int64, torch.bool, torch.int32, torch.uint8, torch.float16, torch.bfloat16]
RANDOM = {"bernoulli", "multinomial", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "rand_like", "randn_like",
          "randint_like", "randn", "randint", "empty", "empty_like", "new_empty", "normal", "uniform", "nn.functional.alpha_dropout",
          "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "empty_strided", "new_empty_strided", "empty_permuted",
          "nn.functional.feature_alpha_dropout", "exponential", "geometric", "log_normal", "cauchy", "randperm"}
TOLERANCES = {torch.float64: (1e-9, 1e-10), torch.float32: (2e-5, 1e-5), torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2)}
LARGEST = 3000


class Inexpressible(Exception):
    """An argument that onestep has no type for."""


def function_of(name):
    """onestep's function for op_db's dotted name; None where there is none."""
    value = onestep
    for part in name.split("."):
        value = getattr(value, part, None)
        if value is None:
            return getattr(onestep.Tensor, name, None)
    return value


def to_onestep(v):
    if isinstance(v, torch.Tensor):
        if v.dtype.is_complex or v.layout != torch.strided or v.is_conj() or v.is_neg() or v.is_quantized:
            raise Inexpressible(v.dtype)
        if v.numel() > LARGEST:
            raise Inexpressible("large")
        return strided(v)
    if isinstance(v, torch.dtype):
        dtype = getattr(onestep, str(v).removeprefix("torch."), None)
        if dtype is None:
            raise Inexpressible(v)
        return dtype
    if isinstance(v, torch.Size):
        return tuple(v)
    if isinstance(v, (list, tuple)):
        return type(v)(to_onestep(i) for i in v) if type(v) in (list, tuple) else tuple(to_onestep(i) for i in v)
    if v is None or v is Ellipsis or isinstance(v, (bool, int, float, str, slice)):
        return v
    raise Inexpressible(type(v))


def strided(v):
    """The same values with the same strides where memory allows, and its own leaf."""
    dtype = getattr(onestep, str(v.dtype).removeprefix("torch."), None)
    if dtype is None:
        raise Inexpressible(v.dtype)
    flat = v.detach().double().reshape(-1).tolist() if v.is_floating_point() else v.detach().reshape(-1).tolist()
    made = onestep.tensor(flat, dtype=onestep.float64 if v.is_floating_point() else dtype).to(dtype).reshape(tuple(v.shape))
    if not v.is_contiguous() and v.dim() > 1:
        made = made.transpose(0, -1).contiguous().transpose(0, -1)
    made = made.detach()
    return made.requires_grad_() if v.requires_grad else made


def leaves(v):
    """The tensors in arguments that want a gradient, in order."""
    if isinstance(v, (torch.Tensor, onestep.Tensor)):
        return [v] if v.requires_grad else []
    if isinstance(v, dict):
        v = list(v.values())
    return [leaf for i in v for leaf in leaves(i)] if isinstance(v, (list, tuple)) else []


def results_of(y):
    if isinstance(y, (torch.Tensor, onestep.Tensor)):
        return [y]
    if isinstance(y, (list, tuple)):
        return [t for i in y for t in results_of(i)]
    return [y]


def same(a, b):
    if not isinstance(a, torch.Tensor):
        return not isinstance(b, onestep.Tensor) and (a == b or a != a)
    if not isinstance(b, onestep.Tensor) or tuple(a.shape) != tuple(b.shape) or str(a.dtype) != str(b.dtype):
        return False
    values = torch.tensor(b.detach().reshape(-1).tolist(), dtype=torch.float64).reshape(a.shape)
    rtol, atol = TOLERANCES.get(a.dtype, (0, 0))
    return torch.allclose(values, a.detach().double(), rtol=rtol, atol=atol, equal_nan=True)


def backward(results, arguments, lib):
    """The gradients of all leaves for weights 1, 2, 3... in every result."""
    outputs = [y for y in results if isinstance(y, lib.Tensor) and y.requires_grad]
    wanted = leaves(arguments)
    if not outputs or not wanted:
        return []
    weights = [lib.arange(1, y.numel() + 1).to(y.dtype).reshape(tuple(y.shape)) / max(1, y.numel()) for y in outputs]
    return lib.autograd.grad(outputs, wanted, weights, allow_unused=True)


def one(op, mine, sample):
    """What one sample comes to."""
    theirs = (sample.input, *sample.args), sample.kwargs
    try:
        args, keywords = to_onestep(theirs[0]), {k: to_onestep(v) for k, v in theirs[1].items()}
    except Inexpressible:
        return "inexpressible", ""
    try:
        want = results_of(op(*theirs[0], **theirs[1]))
        want_grads = backward(want, theirs, torch)
    except Exception as error:  # noqa: BLE001 - what PyTorch itself refuses is no sample
        return "not PyTorch's", str(error)
    if any(isinstance(w, torch.Tensor) and w.dtype.is_complex for w in want):
        return "inexpressible", ""
    try:
        got = results_of(mine(*args, **keywords))
        got_grads = backward(got, (args, keywords), onestep)
    except Exception as error:  # noqa: BLE001 - any refusal is counted, by its text
        return "refused", f"{type(error).__name__}: {error}"[:120]
    if len(want) != len(got) or not all(same(a, b) for a, b in zip(want, got)):
        return "different", "values"
    for a, b in zip(want_grads, got_grads):
        if (a is None) != (b is None):
            if (a if a is not None else torch.zeros(1)).abs().sum() != 0 or (b is not None and max(map(abs, b.reshape(-1).tolist()), default=0)):
                return "different", "gradients"
        elif a is not None and not same(a, b):
            return "different", "gradients"
    return "equal", ""


def quietly(samples):
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            yield from samples
        except Exception:  # noqa: BLE001 - some generators fail for some dtypes
            return


def main():
    counts, reasons, absent = {}, {}, []
    for op in op_db:
        if (sys.argv[2:] and op.name not in sys.argv[2:]) or op.name in RANDOM:
            continue
        mine = function_of(op.name)
        if mine is None:
            absent.append(op.name)
            continue
        key = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        write(counts, absent)
        tally = counts[key] = Counter()
        for dtype in DTYPES:
            if dtype not in op.supported_dtypes("cpu"):
                continue
            try:
                grad = dtype.is_floating_point and op.supports_autograd
                samples = [s for s in quietly(op.sample_inputs("cpu", dtype, requires_grad=grad))]
            except Exception:  # noqa: BLE001
                continue
            for sample in samples:
                for s in (sample, sample.noncontiguous()) if dtype == torch.float32 else (sample,):
                    outcome, reason = one(op.op, mine, s)
                    tally[outcome] += 1
                    if outcome in ("refused", "different"):
                        reasons.setdefault(f"{key} {outcome}", Counter())[f"{str(dtype)[6:]} {reason}"] += 1
    write(counts, absent, complete=True)
    for key, texts in sorted(reasons.items()):
        print(key, dict(texts.most_common(3)))
    print(dict(sum(counts.values(), Counter())))


def write(counts, absent, complete=False):
    """The counts so far into the file."""
    total = sum(counts.values(), Counter())
    report = {"pytorch": torch.__version__, "complete": complete, "total": dict(total), "ops there": len(counts), "names absent": sorted(set(absent)),
              "not all equal": {k: dict(c) for k, c in counts.items() if c["refused"] + c["different"]}}
    with open(sys.argv[1], "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
