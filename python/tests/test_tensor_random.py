"""Calls of every op with arguments drawn by its signature: each returns or raises what a program can catch. `python
test_tensor_random.py SEED CALLS` makes more of them."""

import random
import sys

import pytest

import onestep as torch
from onestep import _C
from onestep._signatures import parse

RAISED = (RuntimeError, TypeError, IndexError, ValueError, OverflowError)
DTYPES = [torch.float32, torch.float64, torch.int64, torch.bool, torch.int32, torch.uint8, torch.float16, torch.bfloat16]
LEFT_OUT = {"from_numpy", "frombuffer", "set_default_dtype"}  # not about tensors
KEYS = [0, -1, None, Ellipsis, slice(0, 1), slice(None, None, 2), (0, slice(1, 2)), [0], True]


class Calls:
    """A stream of calls; results come back as arguments."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.pool: list = []
        self.functions = [getattr(_C, n) for n in dir(_C) if hasattr(getattr(_C, n), "__signatures__") and n not in LEFT_OUT]
        tensor = torch.Tensor
        self.functions += [getattr(tensor, n) for n in dir(tensor) if hasattr(getattr(tensor, n), "__signatures__")]

    def integer(self) -> int:
        return self.random.choice([-3, -2, -1, 0, 1, 2, 3, 5]) if self.random.random() < 0.97 else self.random.choice([10**6, -(10**12)])

    def tensor(self):
        r = self.random
        if self.pool and r.random() < 0.4:
            return r.choice(self.pool)
        sizes = [r.choice([0, 1, 2, 3, 4]) if r.random() < 0.3 else r.choice([1, 2, 3]) for _ in range(r.choice([0, 1, 2, 2, 3, 4]))]
        x = torch.randint(0, 4, sizes) if r.random() < 0.3 else torch.randn(sizes)
        x = x.to(r.choice(DTYPES)) if r.random() < 0.4 else x
        return x.requires_grad_() if x.is_floating_point() and r.random() < 0.3 else x

    def argument(self, kind: str):
        r = self.random
        if r.random() < 0.03:
            return r.choice([None, "a", 1.5, [], object(), float("nan")])
        return {
            "Tensor": self.tensor,
            "Scalar": lambda: r.choice([0, 1, -2, 0.5, True, float("inf")]),
            "int": self.integer,
            "float": lambda: r.choice([0.0, 0.5, 1, -1.5, 2.0, float("inf")]),
            "bool": lambda: r.random() < 0.5,
            "int[]": lambda: r.choice([self.integer(), [self.integer() for _ in range(r.choice([0, 1, 2, 2, 3, 4]))]]),
            "int?[]": lambda: [r.choice([None, self.integer()]) for _ in range(r.choice([1, 2, 2, 3]))],
            "float[]": lambda: [0.5, 2.0],
            "Tensor[]": lambda: [self.tensor() for _ in range(r.choice([0, 1, 2, 3]))],
            "dtype": lambda: r.choice(DTYPES),
            "str": lambda: r.choice(["mean", "sum", "none", "ij", "floor", "ij,jk->ik", "amax", "constant", "reflect", "a"]),
            "Generator": torch.Generator,
            "any": lambda: None,
        }[kind]()

    def call(self) -> None:
        function = self.random.choice(self.functions)
        args, keywords = [], {}
        parameters = parse(self.random.choice(function.__signatures__))[1]
        for i, p in enumerate(parameters):
            if p.default is not None and self.random.random() < 0.6:
                continue
            value = None if p.none and self.random.random() < 0.3 else self.argument(p.kind)
            if p.by_name or keywords or len(args) != i:
                keywords[p.name] = value
            else:
                args.append(value)
        results = function(*args, **keywords)
        for x in results if isinstance(results, tuple) else (results,):
            if isinstance(x, torch.Tensor):
                self.use(x)

    def use(self, x) -> None:
        """Keeps it, looks at it, writes to it, differentiates it."""
        if x.numel() < 500:
            self.pool = self.pool[-20:] + [x]
        if self.random.random() < 0.3 and x.requires_grad:
            x.double().sum().backward()
        if self.random.random() < 0.3 and x.numel() < 500:
            assert repr(x).startswith("tensor(")
            x[self.random.choice(KEYS)]
            x.tolist()
            self.tensor()[self.random.choice(KEYS)] = self.random.choice([1, x, 2.5, True])

    def run(self, count: int) -> int:
        """How many of `count` calls returned."""
        returned = 0
        for _ in range(count):
            try:
                self.call()
                returned += 1
            except RAISED:
                pass
        return returned


@pytest.mark.parametrize("seed", range(8))
def test_random_calls(seed):
    assert Calls(seed).run(300) > 100


if __name__ == "__main__":
    print(Calls(int(sys.argv[1])).run(int(sys.argv[2])))


def test_what_has_strides_is_filled_in_the_order_of_memory():
    """Values of PyTorch 2.13."""
    torch.manual_seed(0)
    assert torch.empty(2, 2).t().uniform_().flatten().tolist() == pytest.approx([0.4962566, 0.0884774, 0.7682218, 0.1320305])
    torch.manual_seed(0)
    drawn = torch.rand_like(torch.ones(1, 2, 2, 3).permute(0, 3, 1, 2))
    assert drawn.flatten()[:3].tolist() == pytest.approx([0.4962566, 0.1320305, 0.4900934])
    assert drawn.stride() == torch.ones(1, 2, 2, 3).permute(0, 3, 1, 2).stride()
    torch.manual_seed(0)
    assert torch.empty(4, 4).t().normal_()[0, 0].item() == pytest.approx(1.5409961)  # one at a time, though they are 16
    torch.manual_seed(0)
    first = torch.randn(8)
    torch.manual_seed(0)
    assert torch.equal(torch.empty(8, 4)[:, ::4].normal_().view(-1), first)


def test_draws_into_a_view_of_a_leaf_are_refused():
    for draw in (lambda x: x.normal_(), lambda x: x.uniform_(), lambda x: x.exponential_(), lambda x: x.bernoulli_(0.5)):
        with pytest.raises(RuntimeError, match="leaf"):
            draw(torch.ones(2, 3, requires_grad=True).t())


def test_normal_around_tensors():
    mean = torch.zeros(20, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    drawn = torch.normal(mean, 1.0)
    torch.manual_seed(0)
    assert drawn.dtype == torch.float64 and torch.equal(drawn, torch.randn(20, dtype=torch.float64)) and not drawn.requires_grad
    assert torch.normal(torch.zeros(3).half(), torch.ones(3)).dtype == torch.float16
