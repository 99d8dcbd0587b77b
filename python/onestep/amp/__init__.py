"""Mixed precision as far as a CPU has it."""

from onestep.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from onestep.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
