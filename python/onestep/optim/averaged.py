"""Rprop and ASGD."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from onestep import _C
from onestep.optim.optimizer import Optimizer, _check, _plain


class Rprop(Optimizer):
    """Each element has a step size of its own, which grows while the gradient keeps its sign (Riedmiller and Braun 1993)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: Tuple[float, float] = (0.5, 1.2),
        step_sizes: Tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check(lr >= 0.0, "learning rate", lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            dict(
                lr=lr,
                etas=etas,
                step_sizes=step_sizes,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                capturable=capturable,
            ),
        )

    def _update(self, group: Dict[str, Any]) -> None:
        smaller, larger = group["etas"]
        for p, grad, state in self._with_grads(group):
            if not state:
                state.update(
                    step=_C.tensor(0.0), prev=_C.zeros_like(p), step_size=_C.full_like(grad, _plain(group["lr"]))
                )
            state["step"].add_(1)
            agreement = grad * state["prev"]
            turned = agreement < 0
            factor = _C.ones_like(grad).masked_fill(agreement > 0, larger).masked_fill(turned, smaller)
            state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
            grad = grad.masked_fill(turned, 0)
            p.addcmul_(grad.sign(), state["step_size"], value=-1)
            state["prev"].copy_(grad)


class ASGD(Optimizer):
    """SGD with a falling rate; state["ax"] is the mean of the parameters since step t0 (Polyak and Juditsky 1992)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check(lr >= 0.0, "learning rate", lr)
        _check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                lambd=lambd,
                alpha=alpha,
                t0=t0,
                weight_decay=weight_decay,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                capturable=capturable,
            ),
        )

    def _update(self, group: Dict[str, Any]) -> None:
        lr, lambd = _plain(group["lr"]), group["lambd"]
        for p, grad, state in self._with_grads(group, decayed=True):
            if not state:
                state.update(step=_C.tensor(0.0), eta=_C.tensor(float(lr)), mu=_C.tensor(1.0), ax=_C.zeros_like(p))
            step = state["step"].add_(1).item()
            rate, share = state["eta"].item(), state["mu"].item()
            p.mul_(1 - lambd * rate).add_(grad, alpha=-rate)
            mean = state["ax"]
            mean.copy_(p if share == 1 else mean + (p - mean) * share)
            state["eta"].fill_(lr / (1 + lambd * lr * step) ** group["alpha"])
            state["mu"].fill_(1 / max(1, step - group["t0"]))
