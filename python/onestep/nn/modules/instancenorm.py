"""Instance norms, by the name PyTorch has for this module."""

from onestep.nn.modules.normalization import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _InstanceNorm  # noqa: F401
