"""There is no accelerator (torch.accelerator)."""


def is_available() -> bool:
    return False


def current_accelerator(check_available: bool = False) -> None:
    """None: there is none."""


def device_count() -> int:
    return 0


def synchronize(device=None) -> None:
    """Accepted: nothing runs elsewhere."""
