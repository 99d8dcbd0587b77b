"""torch.distributed.rpc as a PyTorch that was built without it."""
from onestep._missing import unavailable


def is_available() -> bool:
    return False


def __getattr__(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return unavailable(f"torch.distributed.rpc.{name}")
