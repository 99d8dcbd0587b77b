"""Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from onestep import _C
from onestep.optim.optimizer import Optimizer, _apart, _check, _plain


def _check_adam(lr: float, betas: Tuple[float, float], eps: float, weight_decay: float) -> None:
    _check(lr >= 0.0, "learning rate", lr)
    _check(eps >= 0.0, "epsilon value", eps)
    _check(0.0 <= betas[0] < 1.0, "beta parameter at index 0", betas[0])
    _check(0.0 <= betas[1] < 1.0, "beta parameter at index 1", betas[1])
    _check(weight_decay >= 0.0, "weight_decay value", weight_decay)


class Adam(Optimizer):
    """p -= lr m / (sqrt(v) + eps) with bias-corrected means m of g and v of g^2; weight decay is added to g."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Optional[bool] = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _check_adam(lr, betas, eps, weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                amsgrad=amsgrad,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                differentiable=differentiable,
                fused=fused,
                decoupled_weight_decay=decoupled_weight_decay,
            ),
        )

    def _update(self, group: Dict[str, Any]) -> None:
        by_step: Dict[int, list] = {}
        for row in self._with_grads(group):
            p, _, state = row
            if not state:
                state["step"] = _C.tensor(0.0)
                state["exp_avg"] = _C.zeros_like(p)
                state["exp_avg_sq"] = _C.zeros_like(p)
                if group["amsgrad"]:
                    state["max_exp_avg_sq"] = _C.zeros_like(p)
            state["step"].add_(1)
            by_step.setdefault(int(state["step"].item()), []).append(row)
        for step, both in by_step.items():
            rows, halves = _apart(both)
            self._update_halves(group, step, halves)
            states = [state for _, _, state in rows]
            largest = [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else []
            _C._adamw_step(
                [p for p, _, _ in rows],
                [g for _, g, _ in rows],
                [s["exp_avg"] for s in states],
                [s["exp_avg_sq"] for s in states],
                step,
                _plain(group["lr"]),
                *map(_plain, group["betas"]),
                group["eps"],
                _plain(group["weight_decay"]),
                group["decoupled_weight_decay"],
                largest,
            )

    def _update_halves(self, group: Dict[str, Any], step: int, rows: List[tuple]) -> None:
        lr, decay, (beta1, beta2) = _plain(group["lr"]), _plain(group["weight_decay"]), map(_plain, group["betas"])
        for p, grad, state in rows:
            if decay and group["decoupled_weight_decay"]:
                p.mul_(1 - lr * decay)
            elif decay:
                grad = grad.add(p, alpha=decay)
            state["exp_avg"].lerp_(grad, 1 - beta1)
            square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            if group["amsgrad"]:
                square = state["max_exp_avg_sq"].copy_(_C.maximum(state["max_exp_avg_sq"], square))
            scale = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(group["eps"])
            p.addcdiv_(state["exp_avg"], scale, value=-lr / (1 - beta1**step))


class AdamW(Adam):
    """Adam whose weight decay is taken from the parameter itself: p *= 1 - lr weight_decay."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: Optional[bool] = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Optional[bool] = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
