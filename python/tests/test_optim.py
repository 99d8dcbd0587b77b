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
        (lambda p: T.optim.Adam([p], differentiable=True), NotImplementedError, "no gradient passes a step"),
        (lambda p: T.optim.SGD([p], fused=True, foreach=True), RuntimeError, "fused"),
        (lambda p: T.optim.lr_scheduler.OneCycleLR(T.optim.SGD([p]), [1.0, 2.0], 10), ValueError, "same length"),
        (lambda p: T.optim.lr_scheduler.OneCycleLR(T.optim.SGD([p]), 1.0, 40.5), ValueError, "integer total_steps"),
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




@pytest.mark.parametrize(
    "make",
    [
        lambda o, last: T.optim.lr_scheduler.ExponentialLR(o, 0.5, last_epoch=last),
        lambda o, last: T.optim.lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.5, last_epoch=last),
        lambda o, last: T.optim.lr_scheduler.PolynomialLR(o, 20, last_epoch=last),
        lambda o, last: T.optim.lr_scheduler.LinearLR(o, 0.1, 1, 10, last_epoch=last),
        lambda o, last: T.optim.lr_scheduler.CosineAnnealingLR(o, 10, last_epoch=last),
    ],
)
def test_a_schedule_that_resumes_goes_on_with_the_rate_of_the_optimizer(make):
    def rates(scheduler, steps):
        found = [scheduler.optimizer.param_groups[0]["lr"]]
        for _ in range(steps):
            scheduler.optimizer.step()
            scheduler.step()
            found.append(scheduler.optimizer.param_groups[0]["lr"])
        return found

    first = T.optim.SGD([T.ones(1, requires_grad=True)], lr=1.0)
    whole = rates(make(first, -1), 3)
    again = T.optim.SGD([T.ones(1, requires_grad=True)], lr=1.0)
    again.load_state_dict(first.state_dict())
    resumed = rates(make(again, 2), 1)
    assert resumed[0] == whole[3]
    other = T.optim.SGD([T.ones(1, requires_grad=True)], lr=1.0)
    assert resumed[1] == pytest.approx(rates(make(other, -1), 4)[4])


def test_chained_schedules_within_a_sequence():
    optimizer, schedules = T.optim.SGD([T.ones(1, requires_grad=True)], lr=1.0), T.optim.lr_scheduler
    both = schedules.ChainedScheduler(
        [schedules.ExponentialLR(optimizer, 0.9), schedules.ConstantLR(optimizer, 0.1, 2)], optimizer
    )
    sequence = schedules.SequentialLR(optimizer, [both, schedules.ExponentialLR(optimizer, 0.5)], [3])
    rates = [optimizer.param_groups[0]["lr"]]
    for _ in range(5):
        optimizer.step()
        sequence.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.1, 0.09, 0.81, 1.0, 0.5, 0.25])  # PyTorch 2.13 begins with 0.1 times 0.9


def test_hooks_around_every_step():
    class Halves(T.optim.Optimizer):
        def step(self, closure=None, by=0.5):
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.mul_(by)

    seen = []
    handles = [
        T.optim.optimizer.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("all before")),
        T.optim.optimizer.register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append("all after")),
    ]
    p = T.nn.Parameter(T.ones(1))
    halves = Halves([p], {})
    halves.register_step_pre_hook(lambda o, args, kwargs: (args, {"by": 0.25}))
    halves.register_step_post_hook(lambda o, args, kwargs: seen.append(kwargs))
    halves.step()
    assert p.item() == 0.25 and seen == ["all before", {"by": 0.25}, "all after"]
    lbfgs = T.optim.LBFGS([p], max_iter=1)
    lbfgs.register_step_post_hook(lambda o, args, kwargs: seen.append(len(args)))
    lbfgs.step(lambda: (p * 1).sum())
    assert seen[3:] == ["all before", 1, "all after"]
    for handle in handles:
        handle.remove()
    T.optim.SGD([p], lr=1.0).step()
    assert len(seen) == 6


def test_states_of_schedules_are_those_of_pytorch(tmp_path):
    class Factor:
        def __init__(self):
            self.calls = 0

        def __call__(self, epoch):
            self.calls += 1
            return 0.5

    optimizer, schedules = T.optim.SGD([T.ones(1, requires_grad=True)], lr=1.0), T.optim.lr_scheduler
    steps = schedules.MultiStepLR(optimizer, [2, 2, 3])
    assert steps.state_dict()["milestones"] == {2: 2, 3: 1}
    steps.load_state_dict({**steps.state_dict(), "milestones": [4, 5]})  # as ours were until now
    assert steps.milestones == {4: 1, 5: 1}
    T.save(steps.state_dict(), tmp_path / "state.pt")
    assert T.load(tmp_path / "state.pt") == steps.state_dict()
    factor = schedules.LambdaLR(optimizer, Factor())
    state = factor.state_dict()
    assert state["lr_lambdas"] == [{"calls": 1}]
    factor.step()
    factor.load_state_dict(state)
    assert factor.lr_lambdas[0].calls == 1 and factor.last_epoch == 0
    assert schedules.LambdaLR(optimizer, lambda epoch: 1.0).state_dict()["lr_lambdas"] == [None]


@pytest.mark.parametrize("dtype", [T.bfloat16, T.float16])
@pytest.mark.parametrize(
    "make",
    [
        T.optim.SGD,
        lambda p, lr: T.optim.SGD(p, lr, 0.9, nesterov=True),
        lambda p, lr: T.optim.Adam(p, lr, eps=1e-4, amsgrad=True),  # 1e-8 is 0 in float16
        lambda p, lr: T.optim.AdamW(p, lr, eps=1e-4),
    ],
)
def test_parameters_of_halves(dtype, make):
    T.manual_seed(0)
    p, grads = T.nn.Parameter(T.randn(5, 7)), T.randn(4, 5, 7)
    grads = (grads + 0.1 * grads.sign()).to(dtype)  # squares of less underflow in float16
    h = T.nn.Parameter(p.detach().to(dtype))
    for x in (p, h):
        optimizer = make([x], 0.05)
        for grad in grads:
            x.grad = grad.to(x.dtype)
            optimizer.step()
    assert {v.dtype for v in optimizer.state[h].values() if v.dim() > 0} <= {dtype}
    assert h.float().flatten().tolist() == pytest.approx(p.flatten().tolist(), abs=0.05 if dtype == T.bfloat16 else 0.01)


def test_rates_that_are_tensors_are_written_to():
    lr = T.tensor(0.1)
    optimizer = T.optim.SGD([T.nn.Parameter(T.ones(2))], lr=lr, momentum=0.9)
    schedule = T.optim.lr_scheduler.StepLR(optimizer, 1)
    seen = schedule.get_last_lr()
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is lr and lr.item() == pytest.approx(0.01) and seen[0].item() == pytest.approx(0.1)
    T.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 10)
    assert optimizer.param_groups[0]["lr"] is lr and lr.item() == pytest.approx(0.004)


def test_subclasses_of_optimizers_and_schedules_as_other_libraries_have_them():
    class Around(T.optim.Optimizer):  # another optimizer, whose __init__ is not called
        def __init__(self, inner):
            self.inner, self.param_groups = inner, inner.param_groups

        def step(self, closure=None):
            return self.inner.step(closure)

    class FirstGroup(T.optim.lr_scheduler.ReduceLROnPlateau):
        def _reduce_lr(self, epoch):
            self.optimizer.param_groups[0]["lr"] *= self.factor

    weight, other = (T.nn.Parameter(T.ones(1)) for _ in range(2))
    optimizer = T.optim.SGD([{"params": [weight]}, {"params": [other]}], lr=1.0)
    weight.grad = T.ones(1)
    around = Around(optimizer)
    around.state = optimizer.state
    around.step()
    assert weight.item() == 0 and around.state_dict()["param_groups"][0]["lr"] == 1
    schedule = FirstGroup(optimizer, factor=0.5, patience=0)
    schedule.step(1.0)
    schedule.step(1.0)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 1.0]
