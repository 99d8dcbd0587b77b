"""L-BFGS (Nocedal 1980), with a line search for the strong Wolfe conditions (Nocedal and Wright 2006, 3.5)."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

import onestep
from onestep import _C
from onestep.optim.optimizer import Optimizer, _check

Tensor = _C.Tensor


def _cubic_minimum(x1: float, f1: float, g1: float, x2: float, f2: float, g2: float, bounds: Any = None) -> float:
    """The minimum of the cubic through two points with their derivatives, within bounds."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        at = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        at = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(at, low), high)


def _strong_wolfe(
    evaluate: Callable,
    t: float,
    d: Tensor,
    f: float,
    g: Tensor,
    gtd: float,
    tolerance_change: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    max_steps: int = 25,
) -> Tuple:
    """(loss, gradient, step, evaluations) at a step along d with enough decrease and a derivative that is flat enough."""
    largest = d.abs().max().item()
    g = g.clone()
    f_new, g_new = evaluate(t)
    evaluations, gtd_new = 1, g_new.dot(d).item()
    t_old, f_old, g_old, gtd_old = 0.0, f, g, gtd
    done, steps, bracket = False, 0, None
    while steps < max_steps:  # bracket a minimum
        if f_new > f + c1 * t * gtd or (steps > 1 and f_new >= f_old):
            bracket = [(t_old, f_old, g_old, gtd_old), (t, f_new, g_new.clone(), gtd_new)]
            break
        if abs(gtd_new) <= -c2 * gtd:
            bracket, done = [(t, f_new, g_new, gtd_new)], True
            break
        if gtd_new >= 0:
            bracket = [(t_old, f_old, g_old, gtd_old), (t, f_new, g_new.clone(), gtd_new)]
            break
        bounds = (t + 0.01 * (t - t_old), t * 10)
        before = t
        t = _cubic_minimum(t_old, f_old, gtd_old, t, f_new, gtd_new, bounds)
        t_old, f_old, g_old, gtd_old = before, f_new, g_new.clone(), gtd_new
        f_new, g_new = evaluate(t)
        evaluations, gtd_new, steps = evaluations + 1, g_new.dot(d).item(), steps + 1
    if bracket is None:
        bracket = [(0.0, f, g, gtd), (t, f_new, g_new, gtd_new)]
    stalled = False
    low, high = (0, 1) if len(bracket) == 1 or bracket[0][1] <= bracket[1][1] else (1, 0)
    while not done and steps < max_steps:  # close in on it
        if abs(bracket[1][0] - bracket[0][0]) * largest < tolerance_change:
            break
        t = _cubic_minimum(bracket[0][0], bracket[0][1], bracket[0][3], bracket[1][0], bracket[1][1], bracket[1][3])
        left, right = min(b[0] for b in bracket), max(b[0] for b in bracket)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:  # too near to an end
            if stalled or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        f_new, g_new = evaluate(t)
        evaluations, gtd_new, steps = evaluations + 1, g_new.dot(d).item(), steps + 1
        point = (t, f_new, g_new.clone(), gtd_new)
        if f_new > f + c1 * t * gtd or f_new >= bracket[low][1]:
            bracket[high] = point
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(gtd_new) <= -c2 * gtd:
                done = True
            elif gtd_new * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
    best = bracket[low if len(bracket) > 1 else 0]
    return best[1], best[2], best[0], evaluations


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last `history_size` changes of parameters and gradients; step(closure) evaluates often."""

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: Optional[int] = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: Optional[str] = None,
    ) -> None:
        _check(lr >= 0.0, "learning rate", lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(
            params,
            dict(
                lr=lr,
                max_iter=max_iter,
                max_eval=max_eval,
                tolerance_grad=tolerance_grad,
                tolerance_change=tolerance_change,
                history_size=history_size,
                line_search_fn=line_search_fn,
            ),
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: List[Tensor] = self.param_groups[0]["params"]

    def _flat_grad(self) -> Tensor:
        return _C.cat([(_C.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in self._params])

    def _move(self, t: float, direction: Tensor) -> None:
        begin = 0
        for p in self._params:
            p.add_(direction[begin : begin + p.numel()].view(p.shape), alpha=t)
            begin += p.numel()

    def _direction(self, state: dict, grad: Tensor) -> Tensor:
        """-H grad by the two loops over the history."""
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        q = grad.neg()
        al = [0.0] * len(dirs)
        for i in range(len(dirs) - 1, -1, -1):
            al[i] = steps[i].dot(q) * ro[i]
            q.sub_(dirs[i] * al[i])
        d = q * state["H_diag"]
        for i in range(len(dirs)):
            d.add_(steps[i] * (al[i] - dirs[i].dot(d) * ro[i]))
        return d

    def _remember(self, state: dict, grad: Tensor, history_size: int) -> None:
        y, s = grad - state["prev_flat_grad"], state["d"] * state["t"]
        ys = y.dot(s)
        if ys.item() > 1e-10:
            if len(state["old_dirs"]) == history_size:
                for name in ("old_dirs", "old_stps", "ro"):
                    state[name].pop(0)
            state["old_dirs"].append(y)
            state["old_stps"].append(s)
            state["ro"].append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Up to max_iter iterations; closure clears gradients, computes the loss and calls backward."""
        group = self.param_groups[0]
        lr, search = group["lr"], group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")

        def evaluate_here() -> Any:
            with onestep.enable_grad():
                return closure()

        with onestep.no_grad():
            state = self.state[self._params[0]]
            state.setdefault("func_evals", 0)
            state.setdefault("n_iter", 0)
            original = evaluate_here()
            loss, evaluations = float(original), 1
            state["func_evals"] += 1
            grad = self._flat_grad()
            if grad.abs().max().item() <= group["tolerance_grad"]:
                return original
            iterations = 0
            while iterations < group["max_iter"]:
                iterations += 1
                state["n_iter"] += 1
                if state["n_iter"] == 1:
                    state.update(d=grad.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
                else:
                    self._remember(state, grad, group["history_size"])
                    state["d"] = self._direction(state, grad)
                previous_loss = state["prev_loss"] = loss
                state["prev_flat_grad"] = grad.clone()
                d = state["d"]
                t = min(1.0, 1.0 / grad.abs().sum().item()) * lr if state["n_iter"] == 1 else lr
                gtd = grad.dot(d).item()
                if gtd > -group["tolerance_change"]:
                    state["t"] = t
                    break
                new_evaluations = 0
                if search is not None:
                    start = [p.clone() for p in self._params]

                    def evaluate(step: float) -> Tuple[float, Tensor]:
                        self._move(step, d)
                        value = float(evaluate_here())
                        gradient = self._flat_grad()
                        for p, old in zip(self._params, start):
                            p.copy_(old)
                        return value, gradient

                    loss, grad, t, new_evaluations = _strong_wolfe(evaluate, t, d, loss, grad, gtd, group["tolerance_change"])
                    self._move(t, d)
                else:
                    self._move(t, d)
                    if iterations != group["max_iter"]:
                        loss = float(evaluate_here())
                        grad = self._flat_grad()
                        new_evaluations = 1
                state["t"] = t
                evaluations += new_evaluations
                state["func_evals"] += new_evaluations
                if (
                    evaluations >= group["max_eval"]
                    or grad.abs().max().item() <= group["tolerance_grad"]
                    or d.mul(t).abs().max().item() <= group["tolerance_change"]
                    or abs(loss - previous_loss) < group["tolerance_change"]
                ):
                    break
        return original
