"""Optimizers, averages of models and schedules."""

from programs import case, refused


@case
def muon_of_given_gradients(T):
    """Tall, wide and square matrices, updated by the same gradients."""
    found = []
    for rows, columns in ((6, 3), (2, 5), (4, 4)):
        p = T.zeros(rows, columns).requires_grad_()
        optimizer = T.optim.Muon([p], lr=1.0, weight_decay=0.5)
        for _ in range(3):
            p.grad = T.randn(rows, columns)
            optimizer.step()
        found.append(p)
    return found


@case
def averaged_models(T):
    swa = T.optim.swa_utils
    model = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.BatchNorm1d(2))
    means = [
        swa.AveragedModel(model),
        swa.AveragedModel(model, use_buffers=True),
        swa.AveragedModel(model, avg_fn=swa.get_ema_avg_fn(0.9)),
        swa.AveragedModel(model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.5), use_buffers=True),
        swa.AveragedModel(model, avg_fn=swa.get_swa_avg_fn()),
        swa.AveragedModel(model, avg_fn=lambda mean, p, n: T.maximum(mean, p)),
    ]
    for _ in range(4):
        with T.no_grad():
            for p in model.parameters():
                p.add_(T.randn(p.shape))
            model(T.randn(5, 2))
        for mean in means:
            mean.update_parameters(model)
    states = [list(mean.state_dict().items()) for mean in means]
    return states, means[0](T.randn(3, 2)), refused(lambda: swa.get_ema_avg_fn(1.5))


@case
def batch_norms_updated(T):
    model = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.BatchNorm1d(3, momentum=0.3))
    model(T.randn(4, 2))
    model.eval()
    T.optim.swa_utils.update_bn([(T.randn(5, 2), T.zeros(5)), T.randn(3, 2)], model)
    return list(model[1].state_dict().items()), model.training, model[1].momentum


@case
def cyclic_rates_go_on(T):
    model = T.nn.Linear(1, 1)
    optimizer = T.optim.Adam(model.parameters())
    schedules = T.optim.lr_scheduler
    first = schedules.CyclicLR(optimizer, 0.1, 0.4, 3, base_momentum=0.7)
    for _ in range(4):
        optimizer.step()
        first.step()
    second = schedules.CyclicLR(T.optim.Adam(model.parameters()), 0.1, 0.4, 3)
    second.load_state_dict(first.state_dict())
    first.step()
    second.step()
    return (
        first.get_last_lr(),
        second.get_last_lr(),
        optimizer.param_groups[0]["betas"],
        refused(lambda: schedules.CyclicLR(optimizer, 0.1, 0.2, mode="x")),
        refused(lambda: schedules.CyclicLR(T.optim.Rprop(model.parameters()), 0.1, 0.2)),
        refused(lambda: schedules.CyclicLR(optimizer, [0.1, 0.2], 0.2)),
        refused(lambda: T.optim.swa_utils.SWALR(optimizer, 0.1, anneal_strategy="x")),
        refused(lambda: T.optim.swa_utils.SWALR(optimizer, 0.1, anneal_epochs=-1)),
    )


@case
def optimizers_are_refused(T):
    p = [T.zeros(2, 3).requires_grad_()]
    calls = (
        ("NAdam", dict(momentum_decay=-1.0)),
        ("RAdam", dict(betas=(0.5, 1.0))),
        ("Adamax", dict(eps=-1.0)),
        ("Rprop", dict(etas=(1.5, 1.2))),
        ("ASGD", dict(weight_decay=-1.0)),
        ("Adafactor", dict(lr=-1.0)),
        ("Adafactor", dict(beta2_decay=1.0)),
        ("Adafactor", dict(d=0.5)),
        ("Muon", dict(momentum=-1.0)),
        ("Muon", dict(adjust_lr_fn="x")),
    )
    texts = [refused(lambda: getattr(T.optim, name)(p, **settings)) for name, settings in calls]
    return texts, refused(lambda: T.optim.Muon([T.zeros(2).requires_grad_()]))


@case
def optimizer_of_ones_own(T):
    from importlib import import_module

    base = import_module(T.__name__ + ".optim.optimizer")

    class Signs(base.Optimizer):
        def __init__(self, params, lr=base.required):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.add_(p.grad.sign(), alpha=-group["lr"])

    p = T.tensor([1.0, -2.0]).requires_grad_()
    (p * p).sum().backward()
    Signs([{"params": [p], "lr": 0.5}]).step()
    return p, refused(lambda: Signs([p])), repr(base.required)
