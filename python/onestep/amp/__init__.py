"""Mixed precision as far as a CPU has it."""

from onestep.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from onestep.amp.bf16_order import fastest_bf16_order, get_bf16_order, set_bf16_order
from onestep.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler", "autocast", "custom_bwd", "custom_fwd", "fastest_bf16_order", "get_bf16_order", "is_autocast_available",
    "set_bf16_order"
]
