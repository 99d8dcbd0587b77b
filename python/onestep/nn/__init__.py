"""Layers, losses and containers of PyTorch's torch.nn."""

from onestep.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from onestep.nn import functional, init, parameter
from onestep.nn import modules, parallel
from onestep.nn.modules import *  # noqa: F403
from onestep.nn import utils
from onestep.nn.parallel import DataParallel

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
    *modules.__all__,
]
