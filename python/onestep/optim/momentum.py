"""NAdam, RAdam and Adamax: Adam with another momentum, a rectified rate, or the largest gradient."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from onestep import _C
from onestep.optim.adam import _check_adam
from onestep.optim.optimizer import Optimizer, _check, _plain

Tensor = _C.Tensor


def _decayed(group: Dict[str, Any], p: Tensor, grad: Tensor) -> Tensor:
    """The gradient with its weight decay; the decoupled one is taken from the parameter itself."""
    decay = group["weight_decay"]
    if decay and group.get("decoupled_weight_decay"):
        p.mul_(1 - _plain(group["lr"]) * decay)
        return grad
    return grad.add(p, alpha=decay) if decay else grad


def _update_means(group: Dict[str, Any], p: Tensor, grad: Tensor, state: Dict[str, Any]) -> float:
    """Takes the gradient into the means of g and g^2; returns the number of the step."""
    beta1, beta2 = group["betas"]
    if "exp_avg" not in state:
        state.update(step=_C.tensor(0.0), exp_avg=_C.zeros_like(p), exp_avg_sq=_C.zeros_like(p))
    state["step"].add_(1)
    state["exp_avg"].lerp_(grad, 1 - beta1)
    state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    return state["step"].item()


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, whose beta1 grows from step to step (Dozat 2016)."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_adam(lr, betas, eps, weight_decay)
        _check(momentum_decay >= 0.0, "momentum_decay value", momentum_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                momentum_decay=momentum_decay,
                decoupled_weight_decay=decoupled_weight_decay,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                differentiable=differentiable,
            ),
        )

    def _update(self, group: Dict[str, Any]) -> None:
        lr, (beta1, beta2) = _plain(group["lr"]), group["betas"]

        def momentum(step: float) -> float:
            return beta1 * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))

        for p, grad, state in self._with_grads(group):
            if not state:
                state["mu_product"] = _C.tensor(1.0)
            grad = _decayed(group, p, grad)
            step = _update_means(group, p, grad, state)
            now, next_one = momentum(step), momentum(step + 1)
            product = state["mu_product"].mul_(now).item()
            scale = state["exp_avg_sq"].div(1 - beta2**step).sqrt_().add_(group["eps"])
            p.addcdiv_(grad, scale, value=-lr * (1.0 - now) / (1.0 - product))
            p.addcdiv_(state["exp_avg"], scale, value=-lr * next_one / (1.0 - product * next_one))


class RAdam(Optimizer):
    """Adam whose rate is rectified by the variance of its denominator in the first steps (Liu et al. 2020)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Optional[bool] = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_adam(lr, betas, eps, weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                decoupled_weight_decay=decoupled_weight_decay,
                differentiable=differentiable,
            ),
        )

    def _update(self, group: Dict[str, Any]) -> None:
        lr, (beta1, beta2) = _plain(group["lr"]), group["betas"]
        longest = 2 / (1 - beta2) - 1  # the length of the mean of g^2 after infinitely many steps
        for p, grad, state in self._with_grads(group):
            step = _update_means(group, p, _decayed(group, p, grad), state)
            update = state["exp_avg"] / (1 - beta1**step) * lr
            correction = 1 - beta2**step
            length = longest - 2 * step * beta2**step / correction
            if length > 5.0:
                share = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
                update = update * (correction**0.5 / state["exp_avg_sq"].sqrt().add_(group["eps"])) * share**0.5
            p.add_(update, alpha=-1.0)


class Adamax(Optimizer):
    """p -= lr m / u, m the bias-corrected mean of g, and u the largest |g|, decayed by beta2 a step (Kingma and Ba 2015)."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: Optional[bool] = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_adam(lr, betas, eps, weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                capturable=capturable,
            ),
        )

    def _update(self, group: Dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        for p, grad, state in self._with_grads(group, decayed=True):
            if not state:
                state.update(step=_C.tensor(0.0), exp_avg=_C.zeros_like(p), exp_inf=_C.zeros_like(p))
            state["step"].add_(1)
            state["exp_avg"].lerp_(grad, 1 - beta1)
            largest = state["exp_inf"]
            largest.copy_(_C.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"])))
            rate = _plain(group["lr"]) / (1 - beta1 ** state["step"].item())
            p.addcdiv_(state["exp_avg"], largest, value=-rate)
