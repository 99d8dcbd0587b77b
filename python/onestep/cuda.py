"""There is no CUDA here (torch.cuda)."""


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def manual_seed(seed: int) -> None:
    """Accepted: there is nothing to seed."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Accepted: there is nothing to free."""


def synchronize(device=None) -> None:
    """Accepted: nothing runs elsewhere."""
    raise AssertionError("Torch not compiled with CUDA enabled")


def is_initialized() -> bool:
    return False


def set_device(device) -> None:
    raise AssertionError("Torch not compiled with CUDA enabled")


def memory_allocated(device=None) -> int:
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def current_device() -> int:
    raise AssertionError("Torch not compiled with CUDA enabled")


def get_device_name(device=None) -> str:
    raise AssertionError("Torch not compiled with CUDA enabled")


class _NoTensor(type):
    """FloatTensor and so on: no tensor is one."""

    def __instancecheck__(cls, value) -> bool:
        return False

    def __call__(cls, *args):
        raise AssertionError("Torch not compiled with CUDA enabled")


FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, LongTensor, IntTensor, ByteTensor, BoolTensor = (
    _NoTensor(f"{name}Tensor", (), {}) for name in "Float Double Half BFloat16 Long Int Byte Bool".split()
)
