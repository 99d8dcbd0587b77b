"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from onestep import _C
from onestep.optim.optimizer import Optimizer, _apart, _check, _plain


class SGD(Optimizer):
    """p -= lr b with b = momentum b + (1 - dampening) g, or with nesterov of g + momentum b."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: Optional[bool] = None,
        differentiable: bool = False,
        fused: Optional[bool] = None,
    ) -> None:
        _check(lr >= 0.0, "learning rate", lr)
        _check(momentum >= 0.0, "momentum value", momentum)
        _check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                dampening=dampening,
                weight_decay=weight_decay,
                nesterov=nesterov,
                maximize=maximize,
                foreach=foreach,
                differentiable=differentiable,
                fused=fused,
            ),
        )

    def _update(self, group: Dict[str, Any]) -> None:
        settings = [_plain(group[name]) for name in ("lr", "momentum", "dampening", "weight_decay")] + [group["nesterov"]]
        rows, halves = _apart(self._with_grads(group, stateless=not group["momentum"]))
        self._update_halves(halves, *settings)
        if not group["momentum"]:
            _C._sgd_step([p for p, _, _ in rows], [g for _, g, _ in rows], [], False, *settings)
            return
        new = [row for row in rows if row[2].get("momentum_buffer") is None]
        old = [row for row in rows if row[2].get("momentum_buffer") is not None]
        for p, _, state in new:
            state["momentum_buffer"] = _C.zeros_like(p)
        for first, part in ((True, new), (False, old)):
            if part:
                _C._sgd_step(
                    [p for p, _, _ in part],
                    [g for _, g, _ in part],
                    [s["momentum_buffer"] for _, _, s in part],
                    first,
                    *settings,
                )

    def _update_halves(
        self, rows: List[tuple], lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool
    ) -> None:
        for p, grad, state in rows:
            if weight_decay:
                grad = grad.add(p, alpha=weight_decay)
            if momentum:
                if state.get("momentum_buffer") is None:
                    state["momentum_buffer"] = grad.clone()
                else:
                    state["momentum_buffer"].mul_(momentum).add_(grad, alpha=1 - dampening)
                average = state["momentum_buffer"]
                grad = grad.add(average, alpha=momentum) if nesterov else average
            p.add_(grad, alpha=-lr)
