"""torch.distributed.rpc as a PyTorch that was built without it."""
from onestep._missing import unavailable_names


def is_available() -> bool:
    return False


__getattr__ = unavailable_names("torch.distributed.rpc")
