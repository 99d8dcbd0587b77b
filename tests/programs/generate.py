"""Random programs of views, in-place writes and ops that record, in the format of interpreter.h.

`program(seed, operations)` gives one. It is run under PyTorch while it is made, so that most of its steps fit its tensors; a step
that PyTorch refuses stays often enough to see that the engine refuses it, too.
"""
import random

import torch
from torch_programs import Machine, Quirk, dtype_name, place

SHAPES = [[3], [2, 3], [2, 3], [2, 2], [1, 3], [3, 1], [2, 1, 2], [4], [2, 2, 2], [], [2]]
# What PyTorch refuses and the engine runs on purpose, as there is one right result.
LENIENT = (
    "Index put requires the source and destination dtypes match",  # the values are converted
    "Subtraction, the `-` operator, with a bool tensor",  # the bool counts as 0 or 1
    "value cannot be converted to type",  # NaN to an integer
    "not implemented for",  # of integers
    "topk does not support bool",
    "refer to a single memory location",  # an operand that overlaps the target: the engine copies it first
)
EMPTY = [[0], [2, 0], [0, 3]]


class Program:
    def __init__(self, seed, operations):
        self.rng, self.operations = random.Random(seed), operations
        self.machine, self.steps, self.count, self.over = Machine(), [], 0, False

    # ---- steps

    def add(self, op, *args, results=1, **kwargs):
        """Appends a step if the engine has the op and PyTorch takes it (or, now and then, does not)."""
        if op not in self.operations or self.over:
            return None
        names = [str(self.count + i) for i in range(results)]
        step = [names if results != 1 else names[0], op, list(args)] + ([kwargs] if kwargs else [])
        try:
            status = self.machine.run(step)
        except Quirk:
            self.over = op.endswith("_")
            return None
        if status == "x" and op == "requires_grad_" and "modified inplace" in self.machine.last_error:
            return None  # even where nothing changes
        if status == "x" and any(text in self.machine.last_error for text in LENIENT):
            return None
        if status == "x" and not (op.endswith("_") or op in ("backward", "grad_of", "retain_grad", "register_hook") or self.chance(0.1)):
            return None
        self.count += results
        self.steps.append(step)
        # What a refused pass without retain_graph has freed of the graph is nobody's promise.
        self.over = status == "x" and op in ("backward", "grad_of") and not (kwargs.get("retain_graph") or (len(args) > 2 and args[2]))
        return "$" + names[0] if status == "." else None

    def chance(self, p):
        return self.rng.random() < p

    def tensors(self, wanted=lambda x: True):
        return ["$" + name for name, x in self.machine.tensors.items() if x is not None and wanted(x)]

    def of(self, ref):
        return self.machine.tensors[ref[1:]]

    def pick(self, wanted=lambda x: True):
        """One of the tensors, often one of the last."""
        all_of_them = self.tensors(wanted)
        if not all_of_them:
            return None
        return self.rng.choice(all_of_them[-4:] if self.chance(0.5) else all_of_them)

    def new(self, shape=None, dtype=None, requires_grad=None):
        r = self.rng
        if shape is None:
            shape = r.choice(EMPTY if self.chance(0.04) else SHAPES)
        if dtype is None:
            dtype = r.choices(["float32", "float64", "int64", "bool", "int32", "uint8"], [80, 10, 5, 3, 1, 1])[0]
        n = 1
        for size in shape:
            n *= size
        if dtype == "bool":
            values = [r.randint(0, 1) for _ in range(n)]
        elif not dtype.startswith("float"):
            values = [r.randint(0 if dtype == "uint8" else -3, 3) for _ in range(n)]
        else:
            values = [r.randint(-8, 8) / 4 for _ in range(n)]
        floating = dtype.startswith("float")
        if requires_grad is None:
            requires_grad = floating and self.chance(0.45)
        return self.add("tensor", dtype, shape, values, *([True] if requires_grad else []))

    def fitting(self, shape, in_place=False, dtypes=None):
        """A tensor that broadcasts with (in place: to) the shape."""
        def fits(x):
            try:
                both = torch.broadcast_shapes(x.shape, shape)
            except RuntimeError:
                return False
            return (not in_place or list(both) == shape) and (dtypes is None or dtype_name(x.dtype) in dtypes)
        found = self.pick(fits) if self.chance(0.75) else None
        if found:
            return found
        target = shape[self.rng.randint(0, len(shape)):] if self.chance(0.3) else shape
        target = [1 if self.chance(0.15) else n for n in target]
        return self.new(target, self.rng.choice(dtypes) if dtypes else None if self.chance(0.1) else "float32")

    def number(self):
        return self.rng.choice([2, -1, 0.5, 1.5, -2.0, 3, 0])

    def dim(self, x):
        return self.rng.randint(-x.dim(), x.dim() - 1) if x.dim() else self.rng.choice([0, -1])

    def mask(self, shape):
        return self.fitting(shape, in_place=True, dtypes=["bool"])

    # ---- kinds of steps

    def view_step(self):
        ref = self.pick()
        if ref is None:
            return self.new()
        x, r = self.of(ref), self.rng
        kind = r.choice(["view", "reshape", "slice", "slice", "select", "select", "narrow", "transpose", "permute", "t", "squeeze", "squeeze_dim",
                         "unsqueeze", "expand", "split", "chunk", "unbind", "detach", "detach", "diagonal", "as_strided", "flatten",
                         "contiguous", "to_same", "index", "index", "movedim", "unfold", "swapaxes", "view_as", "expand_as"])
        dim = self.dim(x)
        size = x.shape[dim] if x.dim() else 1
        if kind in ("view", "reshape"):
            n = x.numel()
            options = [[n], [-1], list(x.shape), [1, n], [n, 1]] + [[d, n // d] for d in (2, 3) if n and n % d == 0] + [list(x.shape) + [1]]
            return self.add(kind, ref, r.choice(options))
        if kind == "slice" and x.dim():
            return self.add("slice", ref, dim, r.randint(-1, max(size - 1, 0)), r.randint(1, size + 1), r.choice([1, 1, 2]))
        if kind == "select" and x.dim():
            return self.add("select", ref, dim, r.randint(-size, size - 1) if size else 0)
        if kind == "narrow" and x.dim():
            start = r.randint(0, size)
            return self.add("narrow", ref, dim, start, r.randint(0 if self.chance(0.1) else min(1, size - start), size - start))
        if kind in ("transpose", "swapaxes", "movedim"):
            return self.add(kind, ref, dim, self.dim(x))
        if kind == "permute":
            return self.add("permute", ref, r.sample(range(x.dim()), x.dim()))
        if kind == "squeeze_dim":
            return self.add("squeeze", ref, dim)
        if kind == "unsqueeze":
            return self.add("unsqueeze", ref, r.randint(-x.dim() - 1, x.dim()))
        if kind == "expand":
            return self.add("expand", ref, [2] * self.chance(0.3) + [2 if n == 1 else r.choice([n, -1]) for n in x.shape])
        if kind in ("split", "chunk") and x.dim():
            parts = getattr(torch, kind)(torch.empty(x.shape), s := r.randint(1, 3), dim)
            return self.add(kind, ref, s, dim, results=len(parts))
        if kind == "unbind" and x.dim() and size:
            return self.add("unbind", ref, dim, results=size)
        if kind == "diagonal" and x.dim() > 1:
            return self.add("diagonal", ref, r.choice([0, 0, 1, -1]), 0, 1)
        if kind == "as_strided" and x.numel() > 1:
            return self.add("as_strided", ref, [2], [1]) if self.chance(0.7) else self.add("as_strided", ref, [x.numel() - 1], [1], x.storage_offset())
        if kind == "to_same":
            return self.add("to", ref, dtype_name(x.dtype))
        if kind == "index":
            return self.add("index", ref, self.items(x, basic=self.chance(0.7)))
        if kind == "unfold" and x.dim() and size > 1:
            return self.add("unfold", ref, dim, 2, r.choice([1, 2]))
        if kind in ("view_as", "expand_as"):
            return self.add(kind, ref, self.pick())
        if kind in ("t", "squeeze", "detach", "flatten", "contiguous"):
            return self.add(kind, ref)
        return None

    def items(self, x, basic):
        """What is between the brackets of x[...]."""
        r, items = self.rng, []
        if not basic and x.dim() and self.chance(0.3):
            mask = self.pick(lambda m: m.dtype == torch.bool and m.shape == x.shape) or self.new(list(x.shape), "bool")
            return [mask] if mask else [0]
        for size in x.shape[: r.randint(0, x.dim())]:
            if self.chance(0.1):
                items.append(None)
            kinds = ["at", "slice"] + (["list"] if not basic else [])
            kind = r.choice(kinds)
            if kind == "at":
                items.append(r.randint(-size, size - 1) if size else 0)
            elif kind == "slice":
                items.append(r.choice([[None, None, None], [1, None, None], [None, -1, None], [None, None, 2], [0, 1, 1]]))
            else:
                length = r.choice([1, 2, 2, 3])
                index = self.add("tensor", "int64", [length], [r.randint(-size, size - 1) if size else 0 for _ in range(length)])
                items.append(index or 0)
        if self.chance(0.15):
            items.append("...")
        return items

    def in_place_step(self):
        ref = self.pick()
        if ref is None:
            return self.new()
        x, r = self.of(ref), self.rng
        shape = list(x.shape)
        kind = r.choice(["add_", "add_", "sub_", "mul_", "mul_", "div_", "copy_", "copy_", "fill_", "zero_", "masked_fill_", "index_put_",
                         "index_put_", "index_put_", "accumulate", "unary", "clamp_", "pow_", "requires_grad_", "scatter", "index_add_",
                         "index_fill_", "masked_scatter_", "fill_tensor", "detach_", "more"])
        if kind in ("add_", "sub_", "mul_", "div_"):
            return self.add(kind, ref, self.number() if self.chance(0.3) else self.fitting(shape, in_place=True))
        if kind == "copy_":
            return self.add("copy_", ref, self.fitting(shape, in_place=True))
        if kind == "fill_":
            return self.add("fill_", ref, self.number())
        if kind == "zero_":
            return self.add("zero_", ref)
        if kind == "masked_fill_":
            return self.add("masked_fill_", ref, self.mask(shape), self.number())
        if kind == "index_put_":
            items = self.items(x, basic=self.chance(0.6))
            try:
                part = list(x[self.part_of(items)].shape)
            except (RuntimeError, IndexError):
                part = shape
            return self.add("index_put_", ref, items, self.number() if self.chance(0.3) else self.fitting(part, in_place=True))
        if kind == "accumulate" and x.dim() and x.shape[0]:
            index = self.add("tensor", "int64", [2], [r.randint(0, x.shape[0] - 1) for _ in range(2)])
            return self.add("index_put_", ref, [index], self.fitting([2] + shape[1:], in_place=True, dtypes=[dtype_name(x.dtype)]), True)
        if kind == "unary":
            return self.add(r.choice(["exp_", "relu_", "neg_", "abs_", "sqrt_", "tanh_", "sigmoid_", "sin_", "cos_", "reciprocal_", "square_", "log_",
                                      "floor_", "rsqrt_", "silu_", "round_", "sign_", "trunc_", "erf_", "expm1_", "log1p_"]), ref)
        if kind == "clamp_":
            return self.add("clamp_", ref, -0.5, 1.0)
        if kind == "pow_":
            return self.add("pow_", ref, r.choice([2, 3, 0, 1, 2.0]))
        if kind == "requires_grad_":
            return self.add("requires_grad_", ref, self.chance(0.8))
        if kind == "detach_":
            return self.add("detach_", ref)
        if kind in ("scatter", "index_add_", "index_fill_") and x.dim() and x.numel():
            dim = self.dim(x)
            count = r.randint(1, x.shape[dim])
            if kind == "scatter":
                part = [count if d == dim % x.dim() else n for d, n in enumerate(shape)]
                n = torch.zeros(part).numel()
                index = self.add("tensor", "int64", part, [r.randint(0, x.shape[dim] - 1) for _ in range(n)])
                source = self.fitting(part, in_place=True, dtypes=[dtype_name(x.dtype)])
                return self.add("scatter_add_", ref, dim, index, source)
            index = self.add("tensor", "int64", [count], [r.randint(0, x.shape[dim] - 1) for _ in range(count)])
            if kind == "index_fill_":
                return self.add("index_fill_", ref, dim, index, self.number())
            part = [count if d == dim % x.dim() else n for d, n in enumerate(shape)]
            source = self.pick(lambda s: list(s.shape) == part and s.dtype == x.dtype) or self.new(part, dtype_name(x.dtype))
            return self.add("index_add_", ref, dim, index, source)
        if kind == "masked_scatter_":
            mask = self.mask(shape)
            return self.add("masked_scatter_", ref, mask, self.new([max(x.numel(), 1)], dtype_name(x.dtype)))
        if kind == "more":
            name = r.choice(["logical_not_", "bitwise_not_", "remainder_", "floor_divide_", "tril_", "triu_", "cumsum_", "addcmul_", "lerp_",
                             "leaky_relu_", "t_", "transpose_", "squeeze_", "unsqueeze_"])
            more = {"remainder_": [2], "floor_divide_": [2], "cumsum_": [0], "transpose_": [0, -1], "unsqueeze_": [0]}.get(name, [])
            if name in ("addcmul_", "lerp_"):
                more = [self.fitting(shape, in_place=True, dtypes=[dtype_name(x.dtype)]) for _ in range(2)]
            return self.add(name, ref, *more)
        return None

    def part_of(self, items):
        return place([self.of(i) if isinstance(i, str) and i != "..." else i for i in items])

    def op_step(self):
        ref = self.pick(lambda x: x.is_floating_point()) if self.chance(0.85) else self.pick()
        if ref is None:
            return self.new(dtype="float32")
        x, r = self.of(ref), self.rng
        shape, dim = list(x.shape), self.dim(x)
        kind = r.choice(["unary", "unary", "unary", "binary", "binary", "binary", "number", "number", "pow", "reduce", "reduce", "softmax", "matmul",
                         "where", "cat", "stack", "layer_norm", "cross_entropy", "clone", "masked_fill", "index_select", "gather", "extremum",
                         "embedding", "linear", "mse", "clamp", "to", "norm", "attention", "compare", "more"])
        if kind == "unary":
            return self.add(r.choice(["exp", "relu", "neg", "abs", "tanh", "sigmoid", "sin", "cos", "gelu", "silu", "sqrt", "log", "rsqrt", "square",
                                      "reciprocal", "erf", "expm1", "log1p", "exp2", "softplus", "tril", "triu", "elu", "leaky_relu", "sign",
                                      "floor", "tan", "asinh", "atan", "sinh", "t"]), ref)
        if kind == "binary":
            return self.add(r.choice(["add", "sub", "mul", "mul", "div", "maximum", "minimum", "pow", "remainder", "fmod", "atan2"]), ref, self.fitting(shape))
        if kind == "number":
            return self.add(r.choice(["add", "sub", "mul", "div", "rsub", "rdiv"]), ref, self.number())
        if kind == "pow":
            return self.add("pow", ref, r.choice([2, 3, 0, 1, 0.5, -1, 2.0]))
        if kind == "reduce":
            op = r.choice(["sum", "sum", "mean", "var", "std", "amax", "amin", "logsumexp", "prod", "cumsum", "cumprod"])
            if op in ("sum", "mean", "prod") and self.chance(0.4):
                return self.add(op, ref)
            return self.add(op, ref, dim, **({"keepdim": True} if self.chance(0.3) and not op.startswith("cum") else {}))
        if kind == "softmax":
            return self.add(r.choice(["softmax", "log_softmax"]), ref, dim)
        if kind == "matmul" and x.dim():
            other = self.pick(lambda y: y.dim() and y.dtype == x.dtype and y.shape[max(-2, -y.dim())] == x.shape[-1])
            return self.add("matmul", ref, other or self.new([shape[-1], 2], dtype_name(x.dtype)))
        if kind == "where":
            return self.add("where", self.mask(shape), ref, self.fitting(shape))
        if kind in ("cat", "stack"):
            other = self.pick(lambda y: y.shape == x.shape) or ref
            return self.add(kind, r.choice([[ref, other], [ref, other, ref]]), dim)
        if kind == "layer_norm" and x.dim() and shape[-1]:
            w = self.pick(lambda y: list(y.shape) == shape[-1:] and y.dtype == x.dtype)
            return self.add("layer_norm", ref, shape[-1:], *([w, w] if w else []))
        if kind == "cross_entropy" and x.dim() == 2 and x.numel():
            target = self.add("tensor", "int64", shape[:1], [r.randint(0, shape[1] - 1) for _ in range(shape[0])])
            return self.add("cross_entropy", ref, target, reduction=r.choice(["mean", "sum", "none"]))
        if kind == "masked_fill":
            return self.add("masked_fill", ref, self.mask(shape), self.number())
        if kind in ("index_select", "gather", "embedding") and x.dim() and x.numel():
            size = shape[dim]
            index = [r.randint(0, size - 1) for _ in range(3)]
            if kind == "index_select":
                return self.add("index_select", ref, dim, self.add("tensor", "int64", [3], index))
            if kind == "gather":
                places = torch.zeros(shape).numel()
                return self.add("gather", ref, dim, self.add("tensor", "int64", shape, [r.randint(0, size - 1) for _ in range(places)]))
            return self.add("embedding", self.add("tensor", "int64", [3], [r.randint(0, shape[0] - 1) for _ in range(3)]), ref)
        if kind == "extremum":
            op = r.choice(["max", "min"])
            return self.add(op, ref) if self.chance(0.4) else self.add(op, ref, dim, results=2)
        if kind == "linear" and x.dim():
            w = self.pick(lambda y: y.dim() == 2 and y.shape[1] == shape[-1] and y.dtype == x.dtype)
            return self.add("linear", ref, w or self.new([2, shape[-1]], dtype_name(x.dtype)))
        if kind == "mse":
            other = self.pick(lambda y: y.shape == x.shape and y.dtype == x.dtype) or ref
            return self.add("mse_loss", ref, other, reduction=r.choice(["mean", "sum", "none"]))
        if kind == "clamp":
            return self.add("clamp", ref, r.choice([-0.5, None]), 1.0)
        if kind == "to":
            return self.add("to", ref, r.choice(["float32", "float64", "int64", "float64"]))
        if kind == "norm":
            return self.add("vector_norm", ref, 2, dim)
        if kind == "attention" and x.dim() >= 2 and x.numel():
            other = self.pick(lambda y: y.shape == x.shape and y.dtype == x.dtype) or ref
            return self.add("scaled_dot_product_attention", ref, other, ref)
        if kind == "compare":
            return self.add(r.choice(["gt", "le", "eq"]), ref, self.number())
        if kind == "more":
            args = {"roll": [1, dim], "repeat": [[2] + [1] * x.dim()], "repeat_interleave": [2, dim], "flip": [[dim]], "outer": [ref], "square": [],
                    "addmm": [ref, ref], "topk": [1, dim], "sort": [dim], "cummax": [dim], "pad": [[1, 1]], "diag_embed": [], "logcumsumexp": [dim],
                    "glu": [dim], "normalize": [2, dim], "nan_to_num": []}
            op = r.choice(list(args))
            return self.add(op, ref, *args[op], results=2 if op in ("topk", "sort", "cummax") else 1)
        if kind == "clone":
            return self.add("clone", ref)
        return None

    def graph_step(self):
        kind = self.rng.choice(["no_grad", "no_grad", "end", "end", "enable_grad", "retain_grad", "requires_grad_", "backward", "backward", "zero_grad", "grad",
                                "grad_of", "grad_of", "set_grad_enabled", "inputs", "create", "register_hook"])
        if kind in ("no_grad", "enable_grad"):
            return self.add(kind) if len(self.machine.guards) < 3 else None
        if kind == "end":
            return self.add("end") if self.machine.guards else None
        if kind == "set_grad_enabled":
            return self.add(kind, self.chance(0.5)) if len(self.machine.guards) < 3 else None
        ref = self.pick(lambda x: x.requires_grad) or self.pick()
        if ref is None:
            return None
        if kind == "backward":
            return self.add("backward", ref, "weights", self.chance(0.6))
        if kind == "requires_grad_":
            return self.add("requires_grad_", ref, self.chance(0.8))
        if kind == "create":
            return self.add("backward", ref, "weights", True, create_graph=True)
        if kind == "register_hook":
            return self.add("register_hook", ref, self.number())
        if kind == "inputs":
            return self.add("backward", ref, "weights", True, inputs=[self.pick(lambda x: x.requires_grad) or ref])
        if kind == "grad_of":
            inputs = [self.pick(lambda x: x.requires_grad) or ref for _ in range(self.rng.choice([1, 1, 2]))]
            create = self.chance(0.5)
            return self.add("grad_of", [ref], inputs, create_graph=create, retain_graph=self.chance(0.8), allow_unused=self.chance(0.8), results=len(inputs))
        return self.add(kind, ref)


def program(seed, operations, length=14):
    p = Program(seed, operations)
    try:
        for _ in range(p.rng.randint(2, 3)):
            p.new()
        tries = 0
        while len(p.steps) < length and not p.over and tries < 4 * length:
            tries += 1
            kind = p.rng.choices([p.view_step, p.in_place_step, p.op_step, p.graph_step, p.new], [30, 28, 24, 12, 3])[0]
            kind()
        while p.machine.guards and not p.over:
            p.add("end")
        ends = p.tensors(lambda x: x.requires_grad)
        p.rng.shuffle(ends)
        for ref in ends[:5]:
            p.add("backward", ref, "weights", True)
    finally:
        p.machine.end()
    return p.steps
