"""torch.nn.parallel: DataParallel on no device is the module itself."""
from onestep import nn
from onestep._missing import unavailable

DistributedDataParallel = unavailable("torch.nn.parallel.DistributedDataParallel")


class DataParallel(nn.Module):
    """Holds `module` and calls it, as PyTorch's does where there is no GPU."""

    def __init__(self, module, device_ids=None, output_device=None, dim: int = 0) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim: int = 0, module_kwargs=None):
    """module(*inputs): there is no GPU."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
