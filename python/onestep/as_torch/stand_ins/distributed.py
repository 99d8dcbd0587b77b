"""torch.distributed as a PyTorch that was built without it, and for a single process."""
from onestep._missing import unavailable_names


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_nccl_available() -> bool:
    return False


def is_torchelastic_launched() -> bool:
    return False


__getattr__ = unavailable_names("torch.distributed")
