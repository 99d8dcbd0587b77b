"""The base of learning-rate schedules."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from onestep._C import Tensor
from onestep.optim.optimizer import Optimizer


def per_group(name: str, optimizer: Optimizer, value: Any) -> List[Any]:
    """A setting for each group of the optimizer: one for all, or a list of them."""
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups has {n}."
        )
    return list(value)


def rate_of(group: Dict[str, Any]) -> Any:
    """The group's rate as it is now."""
    lr = group["lr"]
    return lr.detach().clone() if isinstance(lr, Tensor) else lr


def set_rate(group: Dict[str, Any], lr: Any) -> None:
    """Sets the group's rate; where it is a tensor, that is written to, since others may hold it."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(lr))
    else:
        group["lr"] = lr


class LRScheduler:
    """The base: `step()` sets the rate of every group to get_lr()."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", rate_of(group))
            elif "initial_lr" not in group:
                raise KeyError("param 'initial_lr' is not specified in param_groups when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._last_lr: List[float] = []
        self._first_step()

    _resumes = False  # while a schedule is made that begins later than at its first epoch: the rates are those of then

    def _first_step(self) -> None:
        self._resumes = self.last_epoch >= 0
        self.step()
        del self._resumes

    @property
    def _rates(self) -> List[float]:
        return [rate_of(group) for group in self.optimizer.param_groups]

    def get_lr(self) -> List[float]:
        """The rates of this epoch."""
        raise NotImplementedError

    def get_last_lr(self) -> List[float]:
        """The rates last set."""
        return self._last_lr

    def step(self, epoch: Optional[int] = None) -> None:
        """Goes to the next epoch."""
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = getattr(self, "_closed_form", None) if epoch is not None else None
        for group, lr in zip(self.optimizer.param_groups, self.get_lr() if closed is None else closed()):
            set_rate(group, lr)
        self._last_lr = self._rates

    def state_dict(self) -> dict:
        """All but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes over what state_dict() gave."""
        self.__dict__.update(state_dict)
