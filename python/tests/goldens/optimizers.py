"""Trajectories and rates; PyTorch's are in optimizers.json, which `python optimizers.py` writes again (needs torch)."""

from importlib import import_module


def _start(torch):
    a = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], requires_grad=True)
    return a, torch.tensor([0.1, -0.2], requires_grad=True)


def _loss(a, b):
    return ((a * a).sum(1) * b.cos() + (b - a[:, 0]) ** 4 + a[:, 1].sin()).sum()


OPTIMIZERS = {
    "SGD": [
        dict(lr=0.005),
        dict(lr=0.005, momentum=0.9),
        dict(lr=0.005, momentum=0.9, dampening=0.3, weight_decay=0.1),
        dict(lr=0.005, momentum=0.8, nesterov=True),
        dict(lr=0.002, maximize=True),
    ],
    "Adam": [
        dict(lr=0.05),
        dict(lr=0.05, amsgrad=True, weight_decay=0.1),
        dict(lr=0.05, betas=(0.5, 0.7), eps=1e-3),
        dict(lr=0.01, maximize=True),
    ],
    "AdamW": [dict(), dict(lr=0.05, weight_decay=0.3), dict(lr=0.05, amsgrad=True)],
    "RMSprop": [dict(), dict(lr=0.02, momentum=0.9, weight_decay=0.1), dict(lr=0.02, centered=True, alpha=0.8)],
    "Adagrad": [dict(lr=0.1), dict(lr=0.1, lr_decay=0.2, weight_decay=0.1, initial_accumulator_value=0.3)],
    "Adadelta": [dict(), dict(lr=0.5, rho=0.7, weight_decay=0.1)],
    "NAdam": [
        dict(),
        dict(lr=0.05, weight_decay=0.1, momentum_decay=0.2),
        dict(lr=0.05, betas=(0.5, 0.7), weight_decay=0.2, decoupled_weight_decay=True, maximize=True),
    ],
    "RAdam": [
        dict(lr=0.05),
        dict(lr=0.05, betas=(0.8, 0.9), weight_decay=0.1),
        dict(lr=0.02, weight_decay=0.2, decoupled_weight_decay=True, eps=1e-3),
    ],
    "Adamax": [dict(), dict(lr=0.05, betas=(0.5, 0.7), weight_decay=0.1, eps=1e-3), dict(lr=0.01, maximize=True)],
    "Rprop": [dict(), dict(lr=0.1, etas=(0.3, 1.5), step_sizes=(0.01, 0.15)), dict(lr=0.002, maximize=True)],
    "ASGD": [dict(), dict(lr=0.005, lambd=0.1, alpha=0.5, t0=3, weight_decay=0.1)],
    "Adafactor": [
        dict(),
        dict(lr=0.3, beta2_decay=-0.5, eps=(1e-3, 1e-2), d=2.0, weight_decay=0.1),
        dict(lr=0.01, maximize=True),
    ],
    "Muon": [  # small rates: an update is in bfloat16, where a rounding of the gradient can move it by 2^-8
        dict(),
        dict(lr=0.002, weight_decay=0.3, nesterov=False, momentum=0.9, adjust_lr_fn="match_rms_adamw"),
    ],
    "LBFGS": [
        dict(lr=0.05, max_iter=4),
        dict(line_search_fn="strong_wolfe", max_iter=3),
        dict(lr=0.1, history_size=2, max_iter=3),
    ],
}


def taken(name, a, b):
    """The parameters that the optimizer takes."""
    return [a] if name == "Muon" else [a, b]


def trajectory(torch, name, settings):
    """Losses of the steps, the parameters at the end and all tensors of the state."""
    a, b = _start(torch)
    optimizer = getattr(torch.optim, name)(taken(name, a, b), **settings)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = _loss(a, b)
        loss.backward()
        return loss

    for _ in range(2 if name == "LBFGS" else 8):  # later LBFGS is in a flat minimum, where roundings decide
        losses.append(optimizer.step(closure).item())
    state = optimizer.state_dict()
    keys = {str(i): {k: v.tolist() for k, v in s.items() if isinstance(v, torch.Tensor)} for i, s in state["state"].items()}
    groups = [{k: v for k, v in group.items() if k != "lr"} for group in state["param_groups"]]
    return {"losses": losses, "parameters": [a.tolist(), b.tolist()], "state": keys, "groups": groups, "text": repr(optimizer)}


def _plateau(schedules, o):
    metrics = iter([1.0, 0.9, 0.9, 0.9, 0.9, 0.8, 0.85, 0.84, 0.83, 0.82, 0.81, 0.9, 0.7, 0.7, 0.7])
    scheduler = schedules.ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=1, min_lr=0.05)
    return lambda: scheduler.step(next(metrics))


def _plain(name, *args, **kwargs):
    return lambda schedules, o: getattr(schedules, name)(o, *args, **kwargs).step


def _sequence(schedules, o):
    parts = [
        schedules.ConstantLR(o, factor=0.1, total_iters=3),
        schedules.ExponentialLR(o, gamma=0.9),
        schedules.LinearLR(o, 0.5, total_iters=2),
    ]
    return schedules.SequentialLR(o, parts, [3, 8]).step


def _chain(schedules, o):
    return schedules.ChainedScheduler(
        [schedules.ConstantLR(o, factor=0.1, total_iters=4), schedules.ExponentialLR(o, gamma=0.9)]
    ).step


def _swa(strategy, epochs):
    def start(schedules, o):
        swa = import_module(schedules.__name__.replace("lr_scheduler", "swa_utils"))
        return swa.SWALR(o, [0.05, 0.02], epochs, strategy).step

    return start


SCHEDULES = {
    "StepLR": _plain("StepLR", 3, 0.5),
    "MultiStepLR": _plain("MultiStepLR", [2, 2, 7], gamma=0.3),
    "ExponentialLR": _plain("ExponentialLR", 0.8),
    "CosineAnnealingLR": _plain("CosineAnnealingLR", 5, eta_min=0.01),
    "CosineAnnealingWarmRestarts": _plain("CosineAnnealingWarmRestarts", 2, 2, 0.01),
    "LinearLR": _plain("LinearLR", 0.25, 0.75, 6),
    "ConstantLR": _plain("ConstantLR", 0.5, 4),
    "LambdaLR": _plain("LambdaLR", lambda epoch: 1 / (1 + epoch)),
    "LambdaLR of two": _plain("LambdaLR", [lambda epoch: 0.9**epoch, lambda epoch: 1 / (1 + epoch)]),
    "MultiplicativeLR": _plain("MultiplicativeLR", lambda epoch: 0.9),
    "PolynomialLR": _plain("PolynomialLR", 6, 2.0),
    "OneCycleLR": _plain("OneCycleLR", 0.5, total_steps=16),
    "OneCycleLR of three phases": _plain("OneCycleLR", [0.5, 0.2], total_steps=16, three_phase=True, anneal_strategy="linear"),
    "CyclicLR": _plain("CyclicLR", 0.1, 0.5, 3),
    "CyclicLR that halves": _plain("CyclicLR", [0.1, 0.2], [0.5, 1.0], 2, 4, "triangular2", base_momentum=0.7),
    "CyclicLR that decays": _plain("CyclicLR", 0.1, 0.5, 4, mode="exp_range", gamma=0.9, cycle_momentum=False),
    "CyclicLR of one's own": _plain("CyclicLR", 0.1, 0.5, 2, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"),
    "SWALR": _swa("cos", 5),
    "SWALR in a line": _swa("linear", 4),
    "SWALR at once": _swa("linear", 0),
    "SequentialLR": _sequence,
    "ChainedScheduler": _chain,
    "ReduceLROnPlateau": _plateau,
}


def rates(torch, name):
    """Rates and momenta of two groups over 15 epochs."""
    schedules = import_module(torch.__name__ + ".optim.lr_scheduler")
    a, b = _start(torch)
    optimizer = torch.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.3}], lr=1.0, momentum=0.9)
    step = SCHEDULES[name](schedules, optimizer)
    rows = []
    for _ in range(15):
        rows.append([[group["lr"], group["momentum"]] for group in optimizer.param_groups])
        optimizer.step()
        step()
    return rows


def results(torch):
    """Everything, as it stands in the file."""
    paths = {name: [trajectory(torch, name, settings) for settings in rows] for name, rows in OPTIMIZERS.items()}
    return {"optimizers": paths, "schedules": {name: rates(torch, name) for name in SCHEDULES}}


if __name__ == "__main__":
    import json
    import os

    import torch

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimizers.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results(torch), file, separators=(",", ":"), allow_nan=False)
        file.write("\n")
