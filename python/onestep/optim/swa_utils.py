"""Averages of a model's parameters over training: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any, Callable, Dict, Iterable, List, Optional, Union

import onestep
from onestep import _C
from onestep.nn.modules.module import Module
from onestep.nn.modules.normalization import _BatchNorm
from onestep.optim.optimizer import Optimizer
from onestep.optim.schedule import LRScheduler, per_group

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]
Tensor = _C.Tensor


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """avg_fn of an exponential moving average."""
    _check_decay(decay)

    def update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with onestep.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return update


def get_swa_avg_fn() -> Callable:
    """avg_fn of the mean of all models."""

    def update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with onestep.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return update


def _multi(avg_fn: Callable, share: Callable[[Any], float]) -> Callable:
    """multi_avg_fn that moves each parameter by share(num_averaged) to the model's; avg_fn does integers."""

    def update(averaged: List[Tensor], current: List[Tensor], num_averaged: Any) -> None:
        with onestep.no_grad():
            for mean, p in zip(averaged, current):
                if mean.is_floating_point():
                    mean.lerp_(p, share(num_averaged))
                else:
                    mean.copy_(avg_fn(mean, p, num_averaged))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """multi_avg_fn of an exponential moving average."""
    return _multi(get_ema_avg_fn(decay), lambda num_averaged: 1 - decay)


def get_swa_multi_avg_fn() -> Callable:
    """multi_avg_fn of the mean of all models."""
    return _multi(get_swa_avg_fn(), lambda num_averaged: float(1 / (num_averaged + 1)))


class AveragedModel(Module):
    """A copy of a model whose parameters are averages: update_parameters(model) takes those of the model in."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Optional[Callable] = None,
        multi_avg_fn: Optional[Callable] = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model).to(device)
        self.register_buffer("n_averaged", onestep.tensor(0, dtype=onestep.int64))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> List[Tensor]:
        parts = (model.parameters(), model.buffers()) if self.use_buffers else (model.parameters(),)
        return [tensor.detach() for tensor in itertools.chain(*parts)]

    def update_parameters(self, model: Module) -> None:
        """Takes the model's parameters in, with use_buffers its buffers, too; else those are copied."""
        averaged, current = self._averaged(self.module), self._averaged(model)
        if self.n_averaged == 0:
            for mean, p in zip(averaged, current):
                mean.copy_(p)
        elif self.avg_fn is not None:
            for mean, p in zip(averaged, current):
                mean.copy_(self.avg_fn(mean, p, self.n_averaged))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averaged, current, self.n_averaged)
        if not self.use_buffers:
            for mean, p in zip(self.module.buffers(), model.buffers()):
                mean.detach().copy_(p.detach())
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Sets the running statistics of all batch norms to the means over the batches of the loader."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    with onestep.no_grad():
        for batch in loader:
            batch = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(batch if device is None else batch.to(device))
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the rate that is set to swa_lr in anneal_epochs epochs, then constant."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Union[float, List[float]],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for group, rate in zip(optimizer.param_groups, per_group("swa_lr", optimizer, swa_lr)):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> List[float]:
        step = self._step_count - 1
        step = max(1, step) if self.anneal_epochs == 0 else step
        before, now = self._share(step - 1), self._share(step)

        def rate(group: Dict[str, Any]) -> float:
            start = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            return group["swa_lr"] * now + start * (1 - now)

        return [rate(group) for group in self.optimizer.param_groups]
