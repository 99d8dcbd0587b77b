"""torch.cuda.amp: GradScaler and autocast for a device that is not there."""
from onestep.amp import GradScaler, autocast  # noqa: F401
