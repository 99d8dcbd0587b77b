"""RMSprop, Adagrad and Adadelta, composed of in-place ops."""

from __future__ import annotations

from typing import Any, Dict, Optional

from onestep import _C
from onestep.optim.optimizer import Optimizer, _check, _plain


class RMSprop(Optimizer):
    """p -= lr g / (sqrt(v) + eps), v the running mean of g^2, minus that of g squared if centered (Hinton 2012)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check(lr >= 0.0, "learning rate", lr)
        _check(eps >= 0.0, "epsilon value", eps)
        _check(momentum >= 0.0, "momentum value", momentum)
        _check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        _check(alpha >= 0.0, "alpha value", alpha)
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                alpha=alpha,
                eps=eps,
                centered=centered,
                weight_decay=weight_decay,
                capturable=capturable,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
            ),
        )

    def _update(self, group: Dict[str, Any]) -> None:
        lr, alpha = _plain(group["lr"]), group["alpha"]
        for p, grad, state in self._with_grads(group, decayed=True):
            if not state:
                state["step"] = _C.tensor(0.0)
                state["square_avg"] = _C.zeros_like(p)
                if group["momentum"] > 0:
                    state["momentum_buffer"] = _C.zeros_like(p)
                if group["centered"]:
                    state["grad_avg"] = _C.zeros_like(p)
            state["step"].add_(1)
            state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
            mean = state["square_avg"]
            if group["centered"]:
                average = state["grad_avg"].lerp_(grad, 1 - alpha)
                mean = mean.addcmul(average, average, value=-1)
            scale = mean.sqrt().add_(group["eps"])
            if group["momentum"] > 0:
                state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, scale)
                p.add_(state["momentum_buffer"], alpha=-lr)
            else:
                p.addcdiv_(grad, scale, value=-lr)


class Adagrad(Optimizer):
    """p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(sum of g^2) + eps) (Duchi et al. 2011)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: Optional[bool] = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: Optional[bool] = None,
    ) -> None:
        _check(lr >= 0.0, "learning rate", lr)
        _check(lr_decay >= 0.0, "lr_decay value", lr_decay)
        _check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        _check(initial_accumulator_value >= 0.0, "initial_accumulator_value value", initial_accumulator_value)
        _check(eps >= 0.0, "epsilon value", eps)
        super().__init__(
            params,
            dict(
                lr=lr,
                lr_decay=lr_decay,
                eps=eps,
                weight_decay=weight_decay,
                initial_accumulator_value=initial_accumulator_value,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                fused=fused,
            ),
        )
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(step=_C.tensor(0.0), sum=_C.full_like(p, group["initial_accumulator_value"]).detach())

    def _update(self, group: Dict[str, Any]) -> None:
        for p, grad, state in self._with_grads(group, decayed=True):
            state["step"].add_(1)
            lr = _plain(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
            state["sum"].addcmul_(grad, grad, value=1)
            p.addcdiv_(grad, state["sum"].sqrt().add_(group["eps"]), value=-lr)


class Adadelta(Optimizer):
    """p -= lr g sqrt(u + eps) / sqrt(v + eps), u and v the running means of updates and gradients squared (Zeiler 2012)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: Optional[bool] = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check(lr >= 0.0, "learning rate", lr)
        _check(0.0 <= rho <= 1.0, "rho value", rho)
        _check(eps >= 0.0, "epsilon value", eps)
        _check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                rho=rho,
                eps=eps,
                weight_decay=weight_decay,
                maximize=maximize,
                capturable=capturable,
                foreach=foreach,
                differentiable=differentiable,
            ),
        )

    def _update(self, group: Dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        for p, grad, state in self._with_grads(group, decayed=True):
            if not state:
                state.update(step=_C.tensor(0.0), square_avg=_C.zeros_like(p), acc_delta=_C.zeros_like(p))
            state["step"].add_(1)
            state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
            delta = state["acc_delta"].add(eps).sqrt_().div_(state["square_avg"].add(eps).sqrt_()).mul_(grad)
            state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
            p.add_(delta, alpha=-_plain(group["lr"]))
