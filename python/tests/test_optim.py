"""onestep.optim against values made by PyTorch (goldens/make_nn.py)."""

import pytest

import onestep as T
from test_nn import GOLDEN, make_nn


@pytest.mark.parametrize("case", GOLDEN["optimizers"])
def test_optimizer(case):
    got, wanted = make_nn.optimizer(T, case), GOLDEN["optimizers"][case]
    assert got.pop("values") == pytest.approx(wanted.pop("values"), rel=1e-6, abs=1e-6)
    assert got == wanted


@pytest.mark.parametrize("case", GOLDEN["schedules"])
def test_rates(case):
    assert make_nn.schedule(T, case)["rates"] == pytest.approx(GOLDEN["schedules"][case], rel=1e-14)


def test_state_continues_a_run():
    def run(optimizer, p, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()

    p = T.nn.Parameter(T.tensor([1.0, 2.0]))
    first = T.optim.AdamW([p], lr=0.1)
    run(first, p, 3)
    q = T.nn.Parameter(p.detach().clone())
    second = T.optim.AdamW([q], lr=0.5)
    second.load_state_dict(first.state_dict())
    run(first, p, 3)
    run(second, q, 3)
    assert T.equal(p, q)


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda p: T.optim.SGD([], lr=0.1), ValueError, "empty"),
        (lambda p: T.optim.SGD(p), TypeError, "iterable of Tensors or dicts"),
        (lambda p: T.optim.SGD([p], lr=-1), ValueError, "rate: -1"),
        (lambda p: T.optim.SGD([p, p * 1], lr=1), ValueError, "non-leaf"),
        (lambda p: T.optim.SGD([{"params": [p]}, {"params": [p]}]), ValueError, "more than one"),
        (lambda p: T.optim.Adam([p], betas=(1.0, 0.9)), ValueError, "index 0: 1.0"),
    ],
)
def test_errors(call, kind, text):
    with pytest.raises(kind) as error:
        call(T.nn.Parameter(T.ones(2)))
    assert text in str(error.value)


def test_grad_scaler_skips_steps_that_are_not_finite():
    p = T.nn.Parameter(T.ones(1))
    optimizer, scaler = T.optim.SGD([p], lr=1.0), T.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    scaler.scale((p * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.item() == 1.0 and scaler.get_scale() == 2.0
    optimizer.zero_grad()
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.item() == 0.0 and scaler.get_scale() == 4.0


