"""Optimizers and schedules: PyTorch's trajectories (goldens/optimizers.json), its state_dict layout and its errors."""

import copy
import json
import os
import sys

import pytest

import onestep as torch
from onestep.optim import lr_scheduler

GOLDENS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens")
sys.path.insert(0, GOLDENS)
import optimizers  # noqa: E402

with open(os.path.join(GOLDENS, "optimizers.json"), encoding="utf-8") as file:
    EXPECTED = json.load(file)

ROWS = [(name, i) for name, rows in optimizers.OPTIMIZERS.items() for i in range(len(rows))]


def near(found, expected, relative):
    """Whether two structures agree, numbers up to roundings of float32."""
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        return all(near(found[key], expected[key], relative) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(near(f, e, relative) for f, e in zip(found, expected))
    if isinstance(expected, float):
        return found == pytest.approx(expected, rel=relative, abs=relative / 100)
    return found == expected


def check(torch, name, i, relative):
    found = json.loads(json.dumps(optimizers.trajectory(torch, name, optimizers.OPTIMIZERS[name][i])))
    expected = EXPECTED["optimizers"][name][i]
    for part in expected:
        assert near(found[part], expected[part], relative), part


def test_every_case_has_a_golden():
    assert {n: len(rows) for n, rows in optimizers.OPTIMIZERS.items()} == {
        n: len(rows) for n, rows in EXPECTED["optimizers"].items()
    }
    assert set(optimizers.SCHEDULES) == set(EXPECTED["schedules"])


@pytest.mark.parametrize("name, i", ROWS)
def test_trajectory_state_and_text_as_in_pytorch(name, i):
    check(torch, name, i, 2e-5)


@pytest.mark.parametrize("name", sorted(EXPECTED["schedules"]))
def test_rates_as_in_pytorch(name):
    assert optimizers.rates(torch, name) == EXPECTED["schedules"][name]


def _pytorch():
    pytorch = pytest.importorskip("torch")
    if pytorch is torch:
        pytest.skip("PyTorch itself is needed")
    return pytorch


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, i", ROWS)
def test_golden_is_what_pytorch_gives(name, i):
    check(_pytorch(), name, i, 2e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(EXPECTED["schedules"]))
def test_golden_rates_are_what_pytorch_gives(name):
    assert optimizers.rates(_pytorch(), name) == EXPECTED["schedules"][name]


# ---- states


@pytest.mark.parametrize("name", sorted(optimizers.OPTIMIZERS))
def test_a_loaded_state_goes_on_with_the_same_bits(name):
    settings = optimizers.OPTIMIZERS[name][1]

    def steps(optimizer, parameters, n):
        def closure():
            optimizer.zero_grad()
            loss = optimizers._loss(*parameters)
            loss.backward()
            return loss

        for _ in range(n):
            optimizer.step(closure)

    first = optimizers._start(torch)
    one = getattr(torch.optim, name)(optimizers.taken(name, *first), **settings)
    steps(one, first, 2)
    second = [p.detach().clone().requires_grad_() for p in first]
    two = getattr(torch.optim, name)(optimizers.taken(name, *second), **settings)
    two.load_state_dict(copy.deepcopy(one.state_dict()))
    steps(one, first, 2)
    steps(two, second, 2)
    assert [p.tolist() for p in first] == [p.tolist() for p in second]


def test_pytorchs_state_is_taken_over():
    pytorch = _pytorch()
    theirs, ours = optimizers._start(pytorch), optimizers._start(torch)
    one, two = pytorch.optim.AdamW(theirs, lr=0.05), torch.optim.AdamW(ours, lr=0.05)
    for optimizer, parameters in ((one, theirs), (two, ours)):
        optimizers._loss(*parameters).backward()
        optimizer.step()
    left, right = one.state_dict(), two.state_dict()
    assert left["param_groups"] == right["param_groups"]
    assert {i: list(s) for i, s in left["state"].items()} == {i: list(s) for i, s in right["state"].items()}
    assert left["state"][0]["step"].dtype is pytorch.float32 and right["state"][0]["step"].dtype == torch.float32
    assert right["state"][0]["step"].shape == torch.Size([])


def test_a_schedules_state_goes_on():
    def begun():
        optimizer = torch.optim.SGD(optimizers._start(torch), lr=1.0)
        return optimizer, lr_scheduler.SequentialLR(
            optimizer, [lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3), lr_scheduler.ExponentialLR(optimizer, 0.5)], [4]
        )

    (one, first), (two, second) = begun(), begun()
    for _ in range(6):
        first.step()
    second.load_state_dict(first.state_dict())
    two.load_state_dict(one.state_dict())
    for _ in range(3):
        first.step()
        second.step()
    assert first.get_last_lr() == second.get_last_lr() == [group["lr"] for group in two.param_groups]


# ---- groups, gradients, hooks


def test_groups_are_dicts_that_may_be_changed():
    a, b = optimizers._start(torch)
    optimizer = torch.optim.SGD([{"params": a, "lr": 0.5}], lr=0.1)
    optimizer.add_param_group({"params": [b]})
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]
    before = b.tolist()
    optimizer.param_groups[1]["lr"] = 0.0
    (a.sum() + b.sum()).backward()
    optimizer.step()
    assert b.tolist() == before and a.tolist()[0][0] == 0.0


def test_zero_grad_drops_or_fills():
    a, b = optimizers._start(torch)
    optimizer = torch.optim.SGD([a, b])
    a.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [[0, 0, 0], [0, 0, 0]] and b.grad is None
    optimizer.zero_grad()
    assert a.grad is None


def test_parameters_without_a_gradient_stay():
    a, b = optimizers._start(torch)
    optimizer = torch.optim.AdamW([a, b], lr=0.1)
    before = b.tolist()
    a.sum().backward()
    optimizer.step()
    assert b.tolist() == before and b not in optimizer.state and a in optimizer.state


def test_a_transposed_parameter_is_updated():
    base = torch.arange(6.0).reshape(2, 3)
    turned = base.t().detach().requires_grad_()
    (turned * turned).sum().backward()
    torch.optim.SGD([turned], lr=0.25).step()
    assert turned.tolist() == [[0.0, 1.5], [0.5, 2.0], [1.0, 2.5]] and base.tolist() == [[0.0, 0.5, 1.0], [1.5, 2.0, 2.5]]


def test_hooks_are_called_around_a_step():
    a, _ = optimizers._start(torch)
    optimizer, calls = torch.optim.SGD([a], lr=0.0), []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    handle = optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert calls == ["before", "after", "before"]


def leaf():
    return torch.ones(1, requires_grad=True)


def in_two_groups():
    x = leaf()
    torch.optim.SGD([{"params": [x]}, {"params": [x]}], lr=0.1)


def on_two_optimizers():
    parts = [lr_scheduler.ExponentialLR(torch.optim.SGD([leaf()], lr=1.0), 0.5) for _ in range(2)]
    lr_scheduler.ChainedScheduler(parts)


ERRORS = {
    "nothing": (lambda: torch.optim.SGD([], lr=0.1), ValueError, "optimizer got an empty parameter list"),
    "one tensor": (
        lambda: torch.optim.SGD(leaf(), lr=0.1),
        TypeError,
        "params argument given to the optimizer should be an iterable",
    ),
    "no leaf": (lambda: torch.optim.SGD([leaf() * 2], lr=0.1), ValueError, "can't optimize a non-leaf Tensor"),
    "numbers": (
        lambda: torch.optim.SGD([1.0], lr=0.1),
        TypeError,
        "optimizer can only optimize Tensors, but one of the params is float",
    ),
    "twice": (in_two_groups, ValueError, "some parameters appear in more than one parameter group"),
    "rate": (lambda: torch.optim.Adam([leaf()], lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
    "beta": (lambda: torch.optim.AdamW([leaf()], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
    "nesterov": (
        lambda: torch.optim.SGD([leaf()], nesterov=True),
        ValueError,
        "Nesterov momentum requires a momentum and zero dampening",
    ),
    "LBFGS groups": (
        lambda: torch.optim.LBFGS([{"params": [leaf()]}, {"params": [leaf()]}]),
        ValueError,
        "LBFGS doesn't support per-parameter options",
    ),
    "two optimizers": (on_two_optimizers, ValueError, "to belong to the same optimizer"),
    "no schedules": (lambda: lr_scheduler.ChainedScheduler([]), ValueError, "expects at least one scheduler"),
}


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_error(name):
    call, kind, text = ERRORS[name]
    with pytest.raises(kind, match=text):
        call()


def test_the_same_parameter_twice_in_a_list_warns():
    x = leaf()
    with pytest.warns(UserWarning, match="duplicate parameters"):
        torch.optim.SGD([x, x], lr=0.1)
