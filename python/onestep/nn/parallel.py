"""Wrappers for several devices, of which there is one."""

from __future__ import annotations

from typing import Any

from onestep.nn.modules.module import Module


class DataParallel(Module):
    """The module itself, as `module`: there is one device."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


def data_parallel(
    module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None
) -> Any:
    """module(*inputs): there is one device."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


class DistributedDataParallel(Module):
    """Not there: raises. The class exists so that isinstance can ask for it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "torch.nn.parallel.DistributedDataParallel: not in onestep's Python: the command `onestep` trains over several processes"
        )
