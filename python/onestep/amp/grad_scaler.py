"""GradScaler: keeps gradients of small formats away from 0 by scaling the loss (Micikevicius et al. 2018)."""

from __future__ import annotations

import warnings
from typing import Any, Dict

import onestep
from onestep import _C


class GradScaler:
    """scale(loss).backward(); step(optimizer); update(). Steps with gradients that are not finite are left out."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device != "cpu":
            warnings.warn(
                f"torch.{device}.amp.GradScaler is enabled, but {device.upper()} is not available.  Disabling.", stacklevel=2
            )
            enabled = False
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._enabled = enabled
        self._scale, self._growth_tracker = float(init_scale), 0
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._found: Dict[int, bool] = {}  # by optimizer: whether its gradients, unscaled since update(), are not finite
        self._stepped: set = set()

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def get_scale(self) -> float:
        """The factor of the loss."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """By what the scale grows."""
        return self._growth_factor

    def get_backoff_factor(self) -> float:
        """By what it shrinks."""
        return self._backoff_factor

    def get_growth_interval(self) -> int:
        """After how many finite steps it grows."""
        return self._growth_interval

    def scale(self, outputs: Any) -> Any:
        """outputs times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            return outputs * self._scale
        return type(outputs)(self.scale(value) for value in outputs)

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of the optimizer's parameters by the scale."""
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        bad = False
        with onestep.no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        bad = bad or not bool(p.grad.isfinite().all())
                        p.grad.mul_(1.0 / self._scale)
        self._found[id(optimizer)] = bad

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step() if its gradients are finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Shrinks the scale after a step that was left out, or lets it grow."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._found.values()):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._found.clear()
        self._stepped.clear()

    def state_dict(self) -> Dict[str, Any]:
        """Scale, factors and counter; empty if not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Takes over what state_dict() gave."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._scale, self._growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
