"""Adafactor and Muon, which look at a parameter as a matrix."""

from __future__ import annotations

import math
from typing import Any, Dict, Optional, Tuple

import onestep
from onestep import _C
from onestep.optim.optimizer import Optimizer, _plain

Tensor = _C.Tensor


class Adafactor(Optimizer):
    """The mean of g^2 from its means over rows and columns, a rate relative to the parameter (Shazeer and Stern 2018)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: Tuple[Optional[float], float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: Optional[bool] = None,
        maximize: bool = False,
    ) -> None:
        for right, text in (
            (lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}"),
            (beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}"),
            (eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}"),
            (eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}"),
            (d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}"),
            (weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}"),
        ):
            if not right:
                raise ValueError(text)
        super().__init__(
            params,
            dict(
                lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach, maximize=maximize
            ),
        )

    def _variance(self, grad: Tensor, state: Dict[str, Any], share: float, eps: float) -> Tensor:
        """Takes g^2 into its means; returns the estimate for each element."""
        if grad.dim() < 2:
            return state["variance"].lerp_(grad * grad, share).clone()
        for name, dim in (("row_var", -1), ("col_var", -2)):
            state[name].lerp_(grad.norm(2, dim, keepdim=True).square_().div_(grad.size(dim)), share)
        rows = state["row_var"]
        return (rows @ state["col_var"]).div_(rows.mean(-2, keepdim=True).clamp_(min=eps))

    def _update(self, group: Dict[str, Any]) -> None:
        lr, (eps1, eps2) = _plain(group["lr"]), group["eps"]
        for p, grad, state in self._with_grads(group):
            eps = onestep.finfo(p.dtype).eps if eps1 is None else eps1
            if not state:
                state["step"] = _C.tensor(0.0)
                if grad.dim() > 1:
                    state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
                    state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.size(-1)))
                else:
                    state["variance"] = _C.zeros_like(grad)
            step = state["step"].add_(1).item()
            size = p.numel() ** 0.5
            rate = max(eps2, p.norm(2).item() / size) * min(lr, 1 / step**0.5)
            if group["weight_decay"]:
                p.mul_(1 - lr * group["weight_decay"])
            variance = self._variance(grad, state, step ** group["beta2_decay"], eps)
            update = variance.clamp_(min=eps * eps).rsqrt_().mul_(grad)
            p.add_(update, alpha=-rate / max(1.0, update.norm(2).item() / (size * group["d"])))


def _orthogonalized(grad: Tensor, coefficients: Tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """A matrix with the singular vectors of grad and singular values near 1: X <- a X + (b A + c A^2) X with A = X X^T."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = grad.size(0) > grad.size(1)
    x = grad.bfloat16()
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = _C.addmm(x, _C.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(Optimizer):
    """Momentum whose update is orthogonalized, for the matrices of hidden layers alone (Jordan 2024)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: Tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: Optional[str] = None,
    ) -> None:
        for right, text in (
            (lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}"),
            (momentum >= 0.0, f"momentum should be >= 0 but is: {momentum}"),
            (weight_decay >= 0.0, f"weight decay should be >= 0 but is: {weight_decay}"),
            (
                adjust_lr_fn in (None, "original", "match_rms_adamw"),
                f"Adjust learning rate function {adjust_lr_fn} is not supported",
            ),
        ):
            if not right:
                raise ValueError(text)
        super().__init__(
            params,
            dict(
                lr=lr,
                weight_decay=weight_decay,
                momentum=momentum,
                nesterov=nesterov,
                ns_coefficients=ns_coefficients,
                eps=eps,
                ns_steps=ns_steps,
                adjust_lr_fn=adjust_lr_fn,
            ),
        )
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _update(self, group: Dict[str, Any]) -> None:
        lr, momentum = _plain(group["lr"]), group["momentum"]
        for p, grad, state in self._with_grads(group):
            if not state:
                state["momentum_buffer"] = _C.zeros_like(grad)
            mean = state["momentum_buffer"].lerp_(grad, 1 - momentum)
            update = grad.lerp(mean, momentum) if group["nesterov"] else mean
            update = _orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
            rows, columns = p.shape
            if group["adjust_lr_fn"] == "match_rms_adamw":
                rate = lr * 0.2 * math.sqrt(max(rows, columns))
            else:
                rate = lr * math.sqrt(max(1, rows / columns))
            p.mul_(1 - lr * group["weight_decay"])
            p.add_(update, alpha=-rate)
