"""Runs programs of tensor operations (the format is described in interpreter.h) under PyTorch and records what they come to."""
import contextlib
import json
import math
import subprocess
import warnings

import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore")
REFUSALS = (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, AttributeError, OverflowError)


DTYPES = {n: getattr(torch, n) for n in ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")}


def dtype_name(dtype):
    return str(dtype).removeprefix("torch.")


def values_of(x, digits=None):
    """The elements in row-major order as JSON numbers, floating ones rounded to `digits` significant digits."""
    if x._is_zerotensor():  # a gradient of zeros without memory
        return [0] * x.numel()
    flat = x.detach().cpu().contiguous().reshape(-1)
    if not x.is_floating_point():
        return [int(v) for v in flat.tolist()]
    return [number(v, digits) for v in flat.double().tolist()]


def number(v, digits=None):
    if not math.isfinite(v):
        return "nan" if math.isnan(v) else "inf" if v > 0 else "-inf"
    if digits:
        v = float(f"%.{digits}g" % v)
    return int(v) if v == int(v) and abs(v) < 1e6 and not (v == 0 and math.copysign(1, v) < 0) else v


def weights(like):
    """((7 i) mod 11 - 5) / 4: a gradient that tells the elements of a result apart."""
    values = [((7 * i) % 11 - 5) / 4 for i in range(like.numel())]
    return torch.tensor(values, dtype=torch.float64).reshape(like.shape).to(like.dtype)


def make(dtype, shape, values, requires_grad=False, strides=None):
    values = [float(v) if isinstance(v, str) else v for v in values]
    if strides is None:
        return torch.tensor(values, dtype=dtype).reshape(shape).clone().requires_grad_(requires_grad)
    x = torch.zeros(sum((n - 1) * s for n, s in zip(shape, strides)) + 1 if 0 not in shape else 0, dtype=dtype)
    places = torch.arange(x.numel()).as_strided(shape, strides).reshape(-1)
    x[places] = torch.tensor(values, dtype=dtype)
    return x.as_strided(shape, strides).requires_grad_(requires_grad)


def place(items):
    """What is between the brackets of x[...]."""
    one = {"...": Ellipsis}
    items = [slice(*i) if isinstance(i, list) else one[i] if isinstance(i, str) else i for i in items]
    return tuple(items)


def set_items(x, items, values, accumulate=False):
    if accumulate:
        return x.index_put_(place(items), values, accumulate=True)
    x[place(items)] = values
    return x


def attention(q, k, v, *args, **kwargs):
    return F.scaled_dot_product_attention(q, k, v, *args, **kwargs)


# Ops whose name or arguments are not those of torch, torch.nn.functional or a method.
CALLS = {
    "tensor": make,
    "detach": lambda x: x.detach(),
    "requires_grad_": lambda x, on=True: x.requires_grad_(on),
    "grad": lambda x: x.grad,
    "index": lambda x, items: x[place(items)],
    "index_put_": set_items,
    "slice": lambda x, dim=0, start=0, end=2**60, step=1: torch.ops.aten.slice(x, dim, start, end, step),
    "rsub": lambda x, number: number - x,
    "rdiv": lambda x, number: number / x,
    "to": lambda x, dtype: x.to(dtype),
    "vector_norm": torch.linalg.vector_norm,
    "unfold": torch.Tensor.unfold,
    "im2col": F.unfold,
    "col2im": F.fold,
}


class Guard:
    """A block in which gradients are recorded or not."""

    def __init__(self, on):
        self.on = on

    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(self.on)

    def __exit__(self, *_):
        torch.set_grad_enabled(self.before)


GUARDS = {"no_grad": lambda: Guard(False), "enable_grad": lambda: Guard(True), "set_grad_enabled": Guard}


def operation(op):
    return CALLS.get(op) or getattr(F, op, None) or getattr(torch, op, None) or getattr(torch.Tensor, op)


# Their gradients divide by their input or sum all of what came in: what becomes of NaN and infinity depends on the order.
DIVIDING = ("layer_norm", "logcumsumexp", "prod", "cumprod")


class Quirk(Exception):
    """A step after which PyTorch 2.13 says of a tensor that it requires grad although no gradient can reach it: of no use in a test."""


def is_retaining_view_beside(x, y):
    """x is a view that retains its gradient, of memory that y shares."""
    if x is None or not x._is_view() or not (shares(x, y) or x._base is y):
        return False
    try:
        return x.retains_grad
    except RuntimeError:  # of no more use
        return False


def is_phantom(x):
    """True of a view that says `requires_grad` because its base does, but has no place in the graph: taken under no_grad, or before the
    base was asked to require grad."""
    if not (x.is_leaf and x.requires_grad and x._is_view() and x._base.requires_grad):
        return False
    with torch.enable_grad():
        return x.view_as(x).grad_fn.next_functions[0][0] is None


def listed(results):
    """All results of a call, of any nesting."""
    return [r for inner in results for r in listed(inner)] if isinstance(results, (tuple, list)) else [results]


def shares(x, y):
    both = isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)
    return both and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() and x.numel() > 0


def is_view_of(x, y):
    """x shows elements of y, or would if it had any."""
    both = isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)
    return both and x._is_view() and (x._base is y or x._base is y._base)


def unrepeated(x):
    """x without what an expand has repeated: such dims have size 1."""
    for dim, stride in enumerate(x.stride()):
        x = x.narrow(dim, 0, 1) if stride == 0 and x.shape[dim] > 1 else x
    return x


def overlaps(x, y):
    """They share memory and are not the same elements."""
    return shares(x, y) and (x.shape, x.stride(), x.storage_offset()) != (y.shape, y.stride(), y.storage_offset())


def overlaps_itself(x):
    """Elements at different distances are the same memory, as those of an unfolded tensor."""
    places = torch.zeros((), dtype=torch.int64)
    for size, stride in zip(x.shape, x.stride()):
        places = places.unsqueeze(-1) + stride * torch.arange(size)
    return 0 not in x.stride() and places.unique().numel() < x.numel()


def copies(values):
    return [copies(v) if isinstance(v, list) else v.clone() if isinstance(v, torch.Tensor) else v for v in values]


def is_leaf_beside(x, y):
    """x is a view that requires grad for itself, of memory that y shares."""
    if x is None or (x is y and torch.is_grad_enabled()) or not x._is_view() or not (shares(x, y) or x._base is y):
        return False
    try:
        return x.requires_grad and x.grad_fn is None and not is_phantom(x)
    except RuntimeError:  # of no more use
        return False


class Machine:
    """A running program."""

    def __init__(self, protect=False, overrides={}, quirks=True):
        self.quirks = quirks
        self.tensors, self.guards, self.last_error, self.protect, self.overrides = {}, [], "", protect, overrides
        self.gradients = []  # that grad_of gave
        self.has_normalised = False  # in float32

    def resolve(self, value):
        if isinstance(value, str) and value.startswith("$"):
            return self.tensors[value[1:]]
        if isinstance(value, list):
            return [self.resolve(v) for v in value]
        if isinstance(value, str):
            return float(value) if value in ("nan", "inf", "-inf") else DTYPES.get(value, value)
        return value

    def lacks(self, value):
        if isinstance(value, str) and value.startswith("$"):
            return self.tensors.get(value[1:]) is None
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        return any(self.lacks(v) for v in inner)

    def backward(self, x, gradient=None, retain_graph=False, create_graph=False, inputs=None):
        try:
            gradient = weights(x) if isinstance(gradient, str) else gradient
            x.backward(gradient, retain_graph=retain_graph or self.protect, create_graph=create_graph, inputs=inputs)
        except REFUSALS:  # which gradients arrived before is nobody's promise
            for tensor in self.tensors.values():
                if tensor is not None:
                    tensor.grad = None
            raise

    def call(self, op, args, kwargs):
        if op in GUARDS:
            guard = GUARDS[op](*args)
            guard.__enter__()
            self.guards.append(guard)
        elif op == "end":
            if self.guards:
                self.guards.pop().__exit__(None, None, None)
        elif op == "backward":
            self.backward(*args, **kwargs)
        elif op == "grad_of":
            outputs, inputs = args
            kwargs["retain_graph"] = kwargs.get("retain_graph", False) or self.protect
            return torch.autograd.grad(outputs, inputs, [weights(y) for y in outputs], **kwargs)
        elif op == "retain_grad":
            args[0].retain_grad()
        elif op == "register_hook":
            args[0].register_hook(lambda grad, number=args[1]: grad * number)
        elif op == "zero_grad":
            args[0].grad = None
        elif self.protect:
            return self.protected(op, args, kwargs)
        else:
            return (self.overrides.get(op) or operation(op))(*args, **kwargs)

    def protected(self, op, args, kwargs):
        """The op in a form of which PyTorch refuses nothing for what it saved, on copies, nor for how it goes back: the views of one
        function one by one, and what was expanded written to once."""
        if op in ("split", "chunk", "unbind"):
            return [x.as_strided(v.shape, v.stride(), v.storage_offset()) for x in args[:1] for v in operation(op)(*args, **kwargs)]
        if op.endswith("_") and 0 in args[0].stride():
            if any(a is args[0] for a in args[1:]):
                return args[0]
            with contextlib.suppress(*REFUSALS):
                operation(op)(unrepeated(args[0]), *copies(args[1:]), **kwargs)
                return args[0]
            return operation(op)(args[0], *copies(args[1:]), **kwargs)
        if op.endswith("_"):
            args = args[:1] + copies(args[1:])
        if op.endswith("_") and (hasattr(torch, op[:-1]) or hasattr(F, op[:-1])) and op not in ("requires_grad_", "fill_", "index_put_"):
            return args[0].copy_(operation(op[:-1])(*copies(args), **kwargs))  # an op may save what it gives
        results = operation(op)(*args, **kwargs)
        if op in ("tensor", "grad") or op.endswith("_") or any(r is a or shares(r, a) or is_view_of(r, a) for r in listed(results) for a in args):
            return results
        copied = operation(op)(*copies(args), **kwargs)
        return copies(copied) if isinstance(copied, (tuple, list)) else copies([copied])[0]

    def run(self, step):
        """'.' ran, 'x' refused, '-' left out."""
        names, op, args = step[:3]
        kwargs = step[3] if len(step) > 3 else {}
        if self.lacks(args) or self.lacks(kwargs):
            return "-"
        args, kwargs = [self.resolve(a) for a in args], {name: self.resolve(v) for name, v in kwargs.items()}
        try:
            if self.quirks:
                self.check_quirks(op, args, kwargs)
            self.check_phantoms(op, args + list(kwargs.values()))
            results = self.call(op, args, kwargs)
        except REFUSALS as e:
            if op in ("backward", "grad_of") and ("invert a mask" in str(e) or "ZeroTensors are immutable" in str(e)):
                raise Quirk("a gradient within which PyTorch refuses its own ops") from None
            self.last_error = f"{type(e).__name__}: {e}".split("\n")[0]
            return "x"
        for name, result in zip(names if isinstance(names, list) else [names], listed(results)):
            if name:
                self.tensors[name] = result if result is None or isinstance(result, torch.Tensor) else torch.tensor(result)
        self.results = listed(results)
        if self.quirks and op == "scaled_dot_product_attention" and (results.abs() < 1e-5).any():
            raise Quirk("sums that nearly cancel")
        self.has_normalised |= op == "layer_norm" and results.dtype == torch.float32
        self.gradients += [g for g in self.results if op == "grad_of" and g is not None]
        return "."

    def check_quirks(self, op, args, kwargs):
        if op.endswith("_"):  # else PyTorch 2.13 takes a view of a plain base that has come to require grad for a leaf, and does not write
            with contextlib.suppress(RuntimeError):
                args[0].grad_fn
        if op == "requires_grad_" and args[0].is_leaf and args[1:] != [args[0].requires_grad]:
            if any(x is not None and x._is_view() and (x._base is args[0] or x._base is args[0]._base) and x is not args[0] for x in self.tensors.values()):
                raise Quirk("views of a base that comes to require grad, or no longer does, follow it or not, depending on writes before")
        if op.endswith("_") and op != "requires_grad_" and not args[0].is_floating_point():
            if any(isinstance(a, torch.Tensor) and a.requires_grad for a in args[1:]):
                raise Quirk("integers that come to require grad")
        if op == "logical_not_" and (args[0].requires_grad or args[0]._is_view()):
            raise Quirk("PyTorch leaves what was written over in the graph")
        if op == "register_hook" and args[0]._is_view():
            raise Quirk("a write under no_grad takes the hooks off views")
        if op == "retain_grad" and args[0]._is_view() and args[0]._version:
            raise Quirk("a write under no_grad gives views another node")
        if any(x._is_view() and x._version for x in kwargs.get("inputs", []) + (args[1] if op == "grad_of" else [])):
            raise Quirk("a write under no_grad gives views another node")
        if op == "repeat_interleave" and args[0].dim() == 0 and len(args) > 2:
            raise Quirk("a dim of a number, which PyTorch takes and then refuses")
        if op == "topk" and args[0].unique().numel() < args[0].numel():
            raise Quirk("which of equal elements is the first")
        if op == "layer_norm" and (y := F.layer_norm(*args).abs())[y < 1e-3].any():
            raise Quirk("sums that nearly cancel")
        if op == "layer_norm" and (args[0].shape[-1] < 3 or (args[0].double().var(-1, correction=0) < 1e-4).any()):
            raise Quirk("of equal elements, and in the gradient of two, rounding is all that is left, and 1 / sqrt(eps) makes it large")
        if self.has_normalised and {torch.float32, torch.float64} <= {getattr(a, "dtype", a) for a in listed(args)}:
            raise Quirk("differences that were rounded to float32, at the tolerance of float64")
        if op == "layer_norm" and not args[0].requires_grad and any(a.requires_grad for a in args[2:]):
            raise Quirk("PyTorch says of the gradient of a weight that it depends on the weight")
        if op == "to" and args[0].is_floating_point() and not args[1].is_floating_point:
            if ((args[0] - args[0].round()).abs() < 1e-4).logical_and(args[0] != args[0].round()).any():
                raise Quirk("an integer or the one below, depending on the last bit")
        if op == "pow" and isinstance(args[1], torch.Tensor) and args[0].requires_grad and args[1].requires_grad:
            if ((args[1] == 0) & (args[0] != 0)).any():
                raise Quirk("PyTorch takes the derivative of p x^(p-1) by p for 0 where p is 0")
        if op == "pow" and isinstance(args[1], torch.Tensor) and ((args[0] < 0) & (args[1].abs() > 100)).any():
            raise Quirk("a number or NaN, depending on the last bit")
        if op == "pow" and isinstance(args[1], torch.Tensor) and ((args[0] == 0) & (args[1] == 0)).any():
            raise Quirk("PyTorch's second derivative of 0^0 is NaN: 0 times an infinite one")
        if op == "atan2" and torch.uint8 in [a.dtype for a in args]:
            raise Quirk("PyTorch's gradient negates the uint8: 256 - x instead of -x")
        if op == "as_strided" and not args[0].is_contiguous():
            raise Quirk("elements that are none of the operand: PyTorch's gradient has them or not, depending on writes")
        if kwargs.get("create_graph") and any(x is not None and x._backward_hooks for x in self.tensors.values()):
            raise Quirk("hooks of results that a formula for the gradient uses, or does not")
        if op == "grad_of" and len(args[1]) > 1 and any(x._backward_hooks for x in args[1]):
            raise Quirk("the gradient of an input is taken before its hooks where another input lies behind it, else after them")
        if op.endswith("_") and any(args[0] is g or shares(args[0], g) for g in self.gradients):
            raise Quirk("which of the gradients of one call are one tensor")
        indexed = op == "index_put_" and any(isinstance(i, torch.Tensor) for i in args[1])
        if (indexed or op in ("index_add_", "scatter_add_", "masked_scatter_")) and any(shares(args[0], a) for a in args[1:]):
            raise Quirk("values that are read while they are written to")
        if op in ("fmod", "remainder", "floor_divide") and not all(isinstance(a, torch.Tensor) and not a.is_floating_point() for a in args[:2]):
            ratio = torch.as_tensor(args[0]).double() / torch.as_tensor(args[1]).double()
            if ((ratio - ratio.round()).abs() < 1e-5).logical_and(ratio != ratio.round()).any() or (ratio.abs() > 1e5).any():
                raise Quirk("all or nothing of the divisor, depending on the last bit")
        if op == "atan2" and (torch.as_tensor(args[0]) == 0).any():
            raise Quirk("the sign of a 0")
        if op == "gelu" and args[0].isinf().any():
            raise Quirk("infinity or NaN, depending on the vectors of the processor")
        if op == "grad_of" and any(y.retains_grad for y in args[0]):
            raise Quirk("the gradient of an output is collected even where no input has an influence")
        if op.endswith("_") and op != "requires_grad_":
            recorded = torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in args)
            if any(is_retaining_view_beside(x, args[0]) for x in self.tensors.values() if not (recorded and x is args[0])):
                raise Quirk("a write gives views another node, when somebody looks at them")
            if any(is_leaf_beside(x, args[0]) for x in self.tensors.values()):
                raise Quirk("a view that is a leaf, whose base is written to")
        if op in ("view", "reshape", "flatten", "contiguous", "as_strided", "view_as"):
            owner = args[0] if args[0]._base is None else args[0]._base
            if not owner.is_contiguous():
                raise Quirk("the result of an op has the strides of its operand in PyTorch, and is row-major here")
        if op.endswith("_") and op not in ("requires_grad_", "fill_", "zero_") and overlaps_itself(args[0]):
            raise Quirk("written to as read: torch.as_strided calls it undefined")
        if op.endswith("_") and any(overlaps(args[0], a) for a in args[1:]):
            raise Quirk("an operand that is read while it is written to")

    def check_phantoms(self, op, args):
        """A view without a place in the graph may be written to (which PyTorch refuses) and looked at, nothing else."""
        if not torch.is_grad_enabled() and op not in ("backward", "retain_grad", "requires_grad_", "grad_of", "register_hook"):
            return
        tensors = [x for a in args for x in (a if isinstance(a, list) else [a]) if isinstance(x, torch.Tensor)]
        writes = op.endswith("_") and op != "requires_grad_"
        for x in tensors[1:] if writes else tensors:
            try:
                phantom = is_phantom(x)
            except RuntimeError as e:  # it is of no more use at all, or
                if "ambiguous" not in str(e):
                    continue
                phantom = True  # a view taken under no_grad, whose base was written to
            if phantom and op not in ("detach", "zero_grad", "grad"):
                raise Quirk(op)

    def has_nan(self, x):
        return x is not None and any(y is not None and y.is_floating_point() and not y.detach().isfinite().all() for y in (x, x.grad))

    def end(self):
        while self.guards:
            self.guards.pop().__exit__(None, None, None)

    def state(self, name, x, made, digits):
        if x is None:
            return None
        try:
            flags = "l" if is_phantom(x) else ("r" if x.requires_grad else "") + ("l" if x.is_leaf else "")
        except RuntimeError:  # one of several views of a function, whose base was written to: of no more use
            return "unusable"
        values = None if name in made and x._version == 0 else values_of(x, digits)
        grad = x.grad  # of results of ops those that retain it, or were inputs of a pass
        return [dtype_name(x.dtype), list(x.shape), values, flags, None if grad is None else values_of(grad, digits), x._version]


def want(steps, digits=None, protect=False, overrides={}, keep=False, quirks=True, machine=None):
    """What the program comes to; with `protect` as if an op never saved what is changed in place later (Machine.protected);
    `overrides`: functions by op; `keep`: with the results of the last step; `quirks`: raises Quirk; `machine`: what runs it."""
    machine = machine or Machine(protect, overrides, quirks)
    quirks = machine.quirks
    try:
        status = "".join(machine.run(step) for step in steps)
    finally:
        machine.end()
    made = {step[0] for step in steps if step[1] == "tensor"}
    tensors = {name: machine.state(name, x, made, digits) for name, x in machine.tensors.items()}
    if quirks and any(step[1] in DIVIDING for step in steps) and any(machine.has_nan(x) for x in machine.tensors.values()):
        raise Quirk("which derivatives of a NaN or an infinity are NaN")
    return {"status": status, "tensors": tensors, "error": machine.last_error} | ({"results": machine.results if status[-1] == "." else []} if keep else {})


class Engine:
    """The program run_programs as a process that answers line by line."""

    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def check(self, program):
        self.process.stdin.write(json.dumps(program) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if answer:
            return json.loads(answer)
        self.process.wait()
        crash = {"verdict": "crashed", "step": 0, "what": f"run_programs ended with {self.process.returncode}"}
        self.__init__(self.path)
        return crash

    def operations(self):
        return set(subprocess.run([self.path, "--operations"], capture_output=True, text=True, check=True).stdout.split())
