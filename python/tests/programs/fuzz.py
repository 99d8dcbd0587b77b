"""Random programs of calls with random, also silly, arguments: each call returns or raises a Python exception.

python fuzz.py COUNT [SEED]: runs COUNT programs in a process of its own; one that dies is named by its seed and fails the run.
python fuzz.py --show SEED: the calls of one program, as they are made.
"""
from __future__ import annotations

import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import warnings

CALLS = 8
MEMORY = 3 << 30  # what is larger is refused, not tried
NOT_CALLED = {"save", "load", "set_num_threads", "set_printoptions", "set_default_dtype", "use_deterministic_algorithms", "compile", "seed"}


def functions():
    """(name, function, signatures) of everything public that is called."""
    import onestep
    import onestep.linalg
    import onestep.nn.functional
    from onestep._signatures import parse

    found = []
    for prefix, holder in (("", onestep), ("F.", onestep.nn.functional), ("linalg.", onestep.linalg), ("x.", onestep.Tensor)):
        for name in sorted(dir(holder)):
            operator = name.startswith("__") and name[2:-2] in OPERATORS
            if (name.startswith("_") and not operator) or name in NOT_CALLED:
                continue
            value = getattr(holder, name, None)
            if callable(value) and not isinstance(value, type) and getattr(value, "__module__", "onestep") != "typing":
                found.append((prefix + name, value, [parse(text) for text in getattr(value, "__signatures__", ())]))
    return found


OPERATORS = """add sub mul truediv floordiv mod pow matmul and or xor lshift rshift radd rsub rmul rtruediv rpow neg abs invert getitem setitem
    eq lt len iter bool float int index contains reversed format repr iadd isub imul itruediv""".split()
WORDS = ["mean", "sum", "none", "trunc", "floor", "ij", "xy", "nearest", "bilinear", "bicubic", "area", "reflect", "same", "ij,jk->ik", "...", "",
         "fro", "nuc", "amax", "linear", "\0", "é"]  # fmt: skip
KEYWORDS = ["dim", "keepdim", "dtype", "out", "p", "reduction", "weight", "bias", "stride", "padding", "alpha", "value", "input", "other", "size"]


class Maker:
    """Random arguments."""

    def __init__(self, rng: random.Random):
        import onestep

        self.rng, self.torch = rng, onestep
        self.dtypes = [onestep.float32, onestep.float64, onestep.int64, onestep.bool, onestep.int32, onestep.uint8, onestep.float16, onestep.bfloat16]
        self.tensors = [self.tensor() for _ in range(3)]

    def integer(self):
        if self.rng.random() < 0.04:
            return self.rng.choice([2**31, -(2**31), 2**63 - 1, -(2**63), 2**63, 10**30, 1 << 20])
        return self.rng.randint(-3, 5)

    def number(self):
        if self.rng.random() < 0.3:
            return self.rng.choice([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e308, 1e-320])
        return self.rng.uniform(-3, 3)

    def tensor(self):
        rng, torch = self.rng, self.torch
        shape = [rng.choice([0, 1, 1, 2, 2, 3, 4, 5]) for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5]))]
        dtype = rng.choice(self.dtypes)
        values = [self.number() if dtype.is_floating_point else rng.randint(0, 3) for _ in range(math.prod(shape))]
        made = torch.tensor(values, dtype=dtype).reshape(shape)
        if len(shape) > 1 and rng.random() < 0.3:
            made = made.transpose(0, -1)
        if made.dim() and made.shape[0] and rng.random() < 0.2:
            made = made[:1].expand([4] + list(made.shape[1:]))
        if rng.random() < 0.2:
            made = made[..., ::2] if made.dim() else made
        return made.detach().requires_grad_() if dtype.is_floating_point and rng.random() < 0.5 else made

    def argument(self, depth: int = 0):
        rng = self.rng
        kind = rng.choice("tttttttiiiiinnbNsdlLgeo")
        if kind == "t":
            return rng.choice(self.tensors) if rng.random() < 0.7 else self.tensor()
        if kind == "i":
            return self.integer()
        if kind == "n":
            return self.number()
        if kind == "b":
            return rng.random() < 0.5
        if kind == "s":
            return rng.choice(WORDS)
        if kind == "d":
            return rng.choice(self.dtypes)
        if kind in "lL" and depth < 2:
            items = [self.argument(depth + 1) if kind == "L" else self.integer() for _ in range(rng.randint(0, 4))]
            return tuple(items) if rng.random() < 0.5 else items
        if kind == "e":
            return rng.choice([Ellipsis, slice(None), slice(self.integer(), self.integer(), self.integer()), b"x", {}, object(), 1j])
        if kind == "o":
            return lambda *args: args[0] if args else None
        return None

    def fitting(self, kind: str):
        """An argument of a kind that a signature names, often one that makes sense."""
        rng = self.rng
        if kind == "Tensor":
            return rng.choice(self.tensors) if rng.random() < 0.8 else self.tensor()
        if kind in ("int", "Scalar"):
            return self.integer()
        if kind == "float":
            return rng.choice([self.number(), 0.5, 1.0])
        if kind == "bool":
            return rng.random() < 0.5
        if kind in ("int[]", "int?[]"):
            return [self.integer() for _ in range(rng.randint(0, 4))] if rng.random() < 0.7 else self.integer()
        if kind == "float[]":
            return [self.number() for _ in range(rng.randint(0, 3))]
        if kind == "Tensor[]":
            same = rng.choice(self.tensors)
            return [same if rng.random() < 0.8 else self.tensor() for _ in range(rng.randint(0, 4))]
        if kind == "dtype":
            return rng.choice(self.dtypes)
        return rng.choice(WORDS) if kind == "str" else None

    def call_of(self, name, function, signature):
        """Arguments that fit a signature, but for some of them."""
        rng = self.rng
        args, keywords = [], {}
        for parameter in signature[1]:
            optional = parameter.default is not None
            if optional and rng.random() < 0.7:
                break
            value = self.fitting(parameter.kind) if rng.random() < 0.93 else self.argument()
            if parameter.by_name:
                keywords[parameter.name] = value
            else:
                args.append(value)
        return name, function, args, keywords

    def call(self):
        """A function with its arguments."""
        rng = self.rng
        name, function, signatures = rng.choice(CALLED)
        if signatures and rng.random() < 0.9:
            return self.call_of(name, function, rng.choice(signatures))
        count = rng.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5])
        args = [self.argument() for _ in range(count)]
        if rng.random() < 0.85 and args or name.startswith("x."):
            args[:1] = [rng.choice(self.tensors)]
        keywords = {rng.choice(KEYWORDS): self.argument() for _ in range(rng.choice([0, 0, 0, 1, 2]))}
        return name, function, args, keywords


CALLED: list = []  # of `functions`


def program(seed: int, show: bool = False) -> int:
    """Runs one program; returns how many of its calls returned."""
    import onestep

    rng = random.Random(seed)
    onestep.manual_seed(seed)
    maker, returned = Maker(rng), 0
    for _ in range(CALLS):
        name, function, args, keywords = maker.call()
        if show:
            print(name, [(a.dtype, tuple(a.shape), a.stride()) if isinstance(a, onestep.Tensor) else a for a in args], keywords, flush=True)
        try:
            result = function(*args, **keywords)
        except Exception as error:  # noqa: BLE001 - refusing is right; MemoryError and RecursionError are Exceptions, too
            if show:
                print("   ", type(error).__name__, str(error)[:200], flush=True)
            continue
        returned += 1
        if show:
            print("    returned", type(result), flush=True)
        kept = [r for r in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(r, onestep.Tensor) and r.numel() < 5000]
        maker.tensors = (kept[:2] + maker.tensors)[:6]
        if kept and kept[0].requires_grad and rng.random() < 0.5:
            try:
                kept[0].sum().backward(create_graph=rng.random() < 0.3)
            except Exception as error:  # noqa: BLE001
                if show:
                    print("    backward:", type(error).__name__, str(error)[:200], flush=True)
        if kept and rng.random() < 0.2:
            repr(kept[0])
    return returned


def work(first: int, count: int, place: str) -> None:
    """Runs programs, noting each seed in the file `place` before it runs."""
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which reserves more
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    CALLED.extend(functions())
    note = os.open(place, os.O_WRONLY)
    returned = 0
    for seed in range(first, first + count):
        os.pwrite(note, b"%20d" % seed, 0)
        returned += program(seed)
    print(f"{count} programs, {count * CALLS} calls, {returned} returned")


def main() -> int:
    if sys.argv[1] == "--work":
        work(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
        return 0
    if sys.argv[1] == "--show":
        CALLED.extend(functions())
        program(int(sys.argv[2]), show=True)
        return 0
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    end, died = first + int(sys.argv[1]), 0
    with tempfile.NamedTemporaryFile() as place:
        while first < end:
            done = subprocess.run([sys.executable, __file__, "--work", str(first), str(end - first), place.name])
            if done.returncode == 0:
                break
            seed = int(place.file.seek(0) or place.file.read() or first)
            print(f"program {seed} died: exit status {done.returncode} (fuzz.py --show {seed})", flush=True)
            died, first = died + 1, seed + 1
    print(f"{died} programs died")
    return 1 if died else 0


if __name__ == "__main__":
    sys.exit(main())
