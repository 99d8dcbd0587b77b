"""PyTorch's operator samples (op_db) through the Python package: equal, refused, different; counts by op.

python op_db.py COUNTS.json [NAME...]: needs PyTorch and the package in one process.
    --reference N  takes one of N of the longer reference_inputs instead of sample_inputs
    --errors       takes error_inputs: each must raise what PyTorch raises, or a class of it
    --table FILE   writes the table of names there and absent (docs/python_ops.md)
    --reasons      prints what each sample that is not equal came to
"""
from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import sys
import types
import warnings
from collections import Counter

import onestep
import onestep.nn
import torch
from torch.testing._internal.common_methods_invocations import op_db

DTYPES = [torch.float32, torch.float64, torch.int64, torch.bool, torch.int32, torch.uint8, torch.float16, torch.bfloat16]
RANDOM = {"bernoulli", "multinomial", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "rand_like", "randn_like",
          "randint_like", "randn", "randint", "empty", "empty_like", "new_empty", "normal", "uniform", "nn.functional.alpha_dropout",
          "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "empty_strided", "new_empty_strided", "empty_permuted",
          "exponential", "geometric", "log_normal", "cauchy", "randperm"}  # fmt: skip
SPARSE = {"to_sparse", "sparse.mm"}  # no arrays to compare, and samples in layouts that are not here: test_sparse.py has them
UP_TO_SIGN = {"linalg.eigh", "linalg.svd", "svd"}  # their vectors, whose gradients have the same signs
TIES = {"topk", "kthvalue", "sort", "argsort", "mode"}  # PyTorch does not say which of equal elements they pick
TOLERANCES_OF = {"nn.functional.hardsigmoid": (1e-7, 1e-8)}  # PyTorch takes 1/6 as a float32 in float64, too
TOLERANCES = {torch.float64: (1e-9, 1e-10), torch.float32: (2e-5, 1e-5), torch.complex128: (1e-9, 1e-10), torch.complex64: (2e-5, 1e-5), torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2)}


class Inexpressible(Exception):
    """An argument that onestep has no type for."""


def function_of(name):
    """onestep's function for op_db's dotted name; None where there is none."""
    value = onestep
    for part in name.split("."):
        value = getattr(value, part, None)
        if value is None:
            break
    return value if callable(value) else getattr(onestep.Tensor, name, None)  # torch.cfloat is a dtype


def called_by(op):
    """What calls onestep's op with a sample's arguments: op_db's own lambda, where it has one, with onestep in place of torch."""
    mine = function_of(op.name)
    if mine is not None and isinstance(op.op, types.FunctionType) and op.op.__module__.startswith("torch.testing"):
        names = {**op.op.__globals__, "torch": onestep}
        return types.FunctionType(op.op.__code__, names, op.op.__name__, op.op.__defaults__, op.op.__closure__)
    return mine


def to_onestep(v, storages=None):
    """The argument for onestep; tensors that share memory share it there, too."""
    storages = {} if storages is None else storages
    if isinstance(v, torch.Tensor):
        return copied(v, storages)
    if isinstance(v, torch.dtype):
        dtype = getattr(onestep, str(v).removeprefix("torch."), None)
        if dtype is None:
            raise Inexpressible(v)
        return dtype
    if isinstance(v, torch.memory_format):
        if v == torch.channels_last_3d:
            raise Inexpressible(v)
        return getattr(onestep, str(v).removeprefix("torch."))
    if isinstance(v, (torch.device, torch.Size)):
        return str(v) if isinstance(v, torch.device) else tuple(v)
    if isinstance(v, (list, tuple)):
        return (list if type(v) is list else tuple)(to_onestep(i, storages) for i in v)
    if isinstance(v, dict):
        return {k: to_onestep(i, storages) for k, i in v.items()}
    if v is None or v is Ellipsis or isinstance(v, (bool, int, float, str, slice)):
        return v
    raise Inexpressible(type(v))


def copied(v, storages):
    """The same values at the same places of a storage of the same size; its own leaf where it requires grad."""
    dtype = getattr(onestep, str(v.dtype).removeprefix("torch."), None)
    if v.dim() > 8:
        raise Inexpressible("a rank above 8")
    if v.numel() > 0 and v.untyped_storage().nbytes() == 0:
        raise Inexpressible("a storage without memory")
    if dtype is None or v.device.type != "cpu" or v.layout != torch.strided or v.is_conj() or v.is_neg() or v.is_quantized:
        raise Inexpressible(v.dtype)
    place = None if v.requires_grad or v.numel() == 0 else (v.untyped_storage().data_ptr(), dtype)
    if place not in storages or place is None:
        flat = v.detach().as_strided((v.untyped_storage().nbytes() // v.element_size(),), (1,), 0)
        storages[place] = onestep.from_numpy((flat.float() if v.dtype == torch.bfloat16 else flat.clone()).numpy()).to(dtype)
    made = storages[place].as_strided(tuple(v.shape), v.stride(), v.storage_offset()).detach()
    return made.requires_grad_() if v.requires_grad else made


def to_torch(y):
    """The values of onestep's tensor."""
    y = y.detach()
    return torch.from_numpy(y.to(onestep.float32).numpy().copy()).bfloat16() if y.dtype == onestep.bfloat16 else torch.from_numpy(y.numpy().copy())


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


def same(a, b, tolerances=None):
    if not isinstance(a, torch.Tensor):
        return not isinstance(b, onestep.Tensor) and (a == b or a != a)
    if not isinstance(b, onestep.Tensor) or tuple(a.shape) != tuple(b.shape) or str(a.dtype) != str(b.dtype):
        return False
    rtol, atol = tolerances or TOLERANCES.get(a.dtype, (0, 0))
    if not a.is_floating_point() and not a.is_complex():
        return torch.equal(to_torch(b), a)
    return torch.allclose(widened(to_torch(b)), widened(a), rtol=rtol, atol=atol, equal_nan=True)


def widened(x):
    """In double; of complex numbers both parts."""
    return (torch.view_as_real(x.detach().resolve_conj()) if x.is_complex() else x.detach()).double()


def backward(results, arguments, lib, weigh_in=None):
    """The gradients of all leaves for weights 1, 2, 3... in every result, rounded to `weigh_in`, by default the result's dtype."""
    outputs = [y for y in results if isinstance(y, lib.Tensor) and y.requires_grad]
    wanted = leaves(arguments)
    if not outputs or not wanted:
        return []
    parts = [y.dtype.to_real() if y.is_complex() else y.dtype for y in outputs]
    weights = [(lib.arange(1, y.numel() + 1).to(weigh_in or part).reshape(tuple(y.shape)) / max(1, y.numel())).to(y.dtype)
               for y, part in zip(outputs, parts)]  # fmt: skip
    return lib.autograd.grad(outputs, wanted, weights, allow_unused=True)


def in_float64(v):
    """Arguments with float64 for every narrower floating dtype."""
    if isinstance(v, torch.Tensor):
        return v.detach().double().requires_grad_(v.requires_grad) if v.is_floating_point() else v
    if isinstance(v, torch.dtype):
        return torch.float64 if v.is_floating_point else v
    if isinstance(v, dict):
        return {k: in_float64(i) for k, i in v.items()}
    return type(v)(in_float64(i) for i in v) if type(v) in (list, tuple) else v


def as_exact(op, theirs, want, got, dtype):
    """Whether onestep is at most ten times as far from PyTorch's results in float64 as PyTorch itself in `dtype`, or within it."""
    if not dtype.is_floating_point:
        return False
    torch.manual_seed(42)
    arguments = in_float64(theirs[0]), in_float64(theirs[1])
    exact = results_of(op(*arguments[0], **arguments[1]))
    exact += backward(exact, arguments, torch, weigh_in=dtype)
    for e, a, b in zip(exact, want, got):
        if e is None or a is None or b is None or not isinstance(e, torch.Tensor) or not (e.is_floating_point() or e.is_complex()):
            continue
        b = to_torch(b)
        if e.shape != b.shape or a.dtype != b.dtype:
            return False
        a, b, e = map(widened, (a, b, e))
        b = torch.where((a == b) | (a.isnan() & b.isnan()), e, b)
        off = (a - e).abs()
        allowed = 10 * off[off.isfinite()].max().item() if off.isfinite().any() else 0
        allowed = max(allowed, 4 * torch.finfo(dtype).eps * e[e.isfinite()].abs().max().item() if e.isfinite().any() else 0)
        if not torch.allclose(b, e, rtol=0, atol=allowed, equal_nan=True):
            return False
    return True


def picks_alike(x, a, b):
    """Whether two index tensors pick equal elements of x along a dim: which of them is PyTorch's choice."""
    for dim in range(x.dim()):
        with contextlib.suppress(Exception):
            first, second = (x.detach().take_along_dim(i if i.dim() == x.dim() else i.unsqueeze(dim), dim) for i in (a, b))
            if torch.allclose(first.double(), second.double(), rtol=0, atol=0, equal_nan=True):
                return True
    return False


def run(function, arguments, lib):
    """The results, and the gradients of all leaves."""
    lib.manual_seed(42)  # as wrapper_set_seed, which some of op_db's lambdas are
    results = results_of(function(*arguments[0], **arguments[1]))
    return results, backward(results, arguments, lib)


def arguments_of(sample):
    return (sample.input, *sample.args), sample.kwargs


def one(op, mine, sample):
    """What one sample comes to."""
    theirs = arguments_of(sample)
    try:
        ours = to_onestep(theirs)
    except Inexpressible:
        return "inexpressible", ""
    try:
        want, want_grads = run(op.op, theirs, torch)
    except Exception as error:  # noqa: BLE001 - what PyTorch itself refuses is no sample
        return "not PyTorch's", str(error)
    if any(isinstance(w, torch.Tensor) and not hasattr(onestep, str(w.dtype).removeprefix("torch.")) for w in want):
        return "inexpressible", ""
    try:
        got, got_grads = run(mine, ours, onestep)
    except Exception as error:  # noqa: BLE001 - any refusal is counted, by its text
        return "refused", f"{type(error).__name__}: {error}"[:160]
    if len(want) != len(got):
        return "different", f"{len(got)} results for {len(want)}"
    dtype = next((w.dtype for w in want if isinstance(w, torch.Tensor)), None)
    reason = difference(op, sample, want, got)
    if not reason and op.name not in UP_TO_SIGN:
        reason = different_grads(want_grads, got_grads, TOLERANCES_OF.get(op.name))
    if not reason or reason == "ties" or as_exact(op.op, theirs, [*want, *want_grads], [*got, *got_grads], dtype):
        return "equal", ""
    with contextlib.suppress(Exception):  # PyTorch's loops without vector instructions, which it runs where elements are apart
        apart = sample.noncontiguous()
        want, want_grads = run(op.op, arguments_of(apart), torch)
        if not (difference(op, apart, want, got) or different_grads(want_grads, got_grads)):
            return "equal", ""
    return "different", reason


def difference(op, sample, want, got):
    """How the results differ, in words; "ties" where they differ in the places of equal elements."""
    for a, b in zip(want, got):
        if same(a, b) or (op.name in UP_TO_SIGN and same_vectors(a, b)):
            continue
        ties = op.name in TIES and not sample.kwargs.get("stable") and isinstance(b, onestep.Tensor) and a.dtype == torch.int64
        if ties and a.shape == tuple(b.shape) and picks_alike(sample.input, a, to_torch(b)):
            return "ties"
        return f"values {said(b)} for {said(a)}"
    return ""


def same_vectors(a, b):
    """Whether they are the same up to their signs, or each a whole basis, of which some vectors may be any."""
    if same(a.abs(), b.abs()):
        return True
    basis, n = to_torch(b), a.shape[-1]
    return a.shape == basis.shape and a.shape[-2] == n and torch.allclose(basis.mT @ basis, torch.eye(n, dtype=basis.dtype), atol=1e-5)


def different_grads(want, got, tolerances):
    for a, b in zip(want, got):
        if (a is None) != (b is None):
            if (a if a is not None else to_torch(b)).abs().sum() != 0:
                return "gradients: None"
        elif a is not None and not same(a, b, tolerances):
            return f"gradients {said(b)} for {said(a)}"
    return ""


def said(value):
    """A result in a few words."""
    if not isinstance(value, (torch.Tensor, onestep.Tensor)):
        return repr(value)[:40]
    return f"{str(value.dtype)[6:]}{list(value.shape)} {value.detach().reshape(-1)[:6].tolist()}"


def raises(op, mine, error):
    """What one sample of error_inputs comes to: equal where both raise, and the class is PyTorch's or one of it."""
    sample = error.sample_input
    theirs = arguments_of(sample)
    try:
        args, keywords = to_onestep(theirs)
    except Inexpressible:
        return "inexpressible", ""
    try:
        op(*theirs[0], **theirs[1])
        return "not PyTorch's", ""
    except Exception as raised:  # noqa: BLE001
        expected, text = type(raised), str(raised)
    try:
        mine(*args, **keywords)
    except NotImplementedError as raised:
        return ("equal" if expected is NotImplementedError else "refused"), f"NotImplementedError: {raised}"[:160]
    except Exception as raised:  # noqa: BLE001
        if isinstance(raised, expected):
            return "equal", ""
        return "different", f"{type(raised).__name__}: {raised} for {expected.__name__}: {text}"[:300]
    return "silent", text[:160]


def quietly(samples):
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield from samples()
        except Exception:  # noqa: BLE001 - some generators fail for some dtypes
            return


def outcomes(op, mine, options):
    """What each sample of an op comes to."""
    if options.errors:
        for error in quietly(lambda: op.error_inputs("cpu")):
            yield torch.float32, *raises(op, mine, error)
        return
    chosen = random.Random(op.name)
    for dtype in (d for d in DTYPES if d in op.supported_dtypes("cpu")):
        grad = dtype.is_floating_point and op.supports_autograd
        make = op.reference_inputs if options.reference else op.sample_inputs
        for sample in quietly(lambda: make("cpu", dtype, requires_grad=grad)):
            if options.reference and chosen.randrange(options.reference):
                continue
            for s in (sample, sample.noncontiguous()) if dtype == torch.float32 and not options.reference else (sample,):
                yield dtype, *one(op, mine, s)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("counts")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--reference", type=int)
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--table")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts, there, absent = {}, set(), set()
    for op in op_db:
        if options.names and op.name not in options.names:
            continue
        mine = called_by(op)
        (absent if mine is None else there).add(op.name)
        if mine is None or op.name in RANDOM | SPARSE:
            continue
        key = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        tally, reasons = counts.setdefault(key, Counter()), Counter()
        for dtype, outcome, reason in outcomes(op, mine, options):
            tally[outcome] += 1
            if outcome not in ("equal", "inexpressible"):
                reasons[f"{outcome} {str(dtype)[6:]} {reason}"] += 1
        if options.reasons and reasons:
            print(key, *(f"\n    {n} {text}" for text, n in reasons.most_common(12)), flush=True)
        write(options.counts, counts, there, absent)
    write(options.counts, counts, there, absent, complete=not options.names)
    if options.table:
        write_table(options.table, options.counts)
    print(dict(sum(counts.values(), Counter())))


def write(path, counts, there, absent, complete=False):
    """The counts so far into the file."""
    report = {"pytorch": torch.__version__, "complete": complete, "total": dict(sum(counts.values(), Counter())), "ops there": len(counts),
              "names there": sorted(there), "names absent": sorted(absent), "not all equal": {k: dict(c) for k, c in counts.items() if set(c) - {"equal", "inexpressible", "not PyTorch's"}}}
    with open(path, "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


def write_table(path, counts):
    """The names of op_db that are there and that are absent, by module."""
    with open(counts) as file:
        report = json.load(file)
    total = report["total"]
    tried = sum(total.get(outcome, 0) for outcome in ("equal", "refused", "different"))

    def module(name):
        first, _, rest = name.rpartition(".")
        return first if rest and first.split(".")[0] in ("nn", "linalg", "special", "fft", "masked", "signal", "sparse") else "torch"

    lines = [
        "# PyTorch's operators in Python", "",
        f"The names of PyTorch {report['pytorch'].split('+')[0]}'s operator database (`op_db`), written by `python/tests/programs/op_db.py --table`.",
        f"Of {tried:,} samples of operators that are there, in float32, float64, float16, bfloat16, int64, int32, uint8 and bool, "
        f"{total.get('equal', 0):,} ({total.get('equal', 0) / tried:.2%})",
        f"give PyTorch's results, shapes, dtypes and gradients, {total.get('refused', 0):,} raise an error, and {total.get('different', 0):,} differ.", "",
        "| Module | There | Absent |", "|---|---|---|",
    ]  # fmt: skip
    for name in sorted({module(n) for n in report["names there"] + report["names absent"]}, key=lambda m: (m != "torch", m)):
        cells = []
        for names in (report["names there"], report["names absent"]):
            own = [n if name == "torch" else n[len(name) + 1 :] for n in names if module(n) == name]
            cells.append(f"{len(own)}: " + " ".join(f"`{n}`" for n in own) if own else "0")
        lines.append(f"| `{name}` | {cells[0]} | {cells[1]} |")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
