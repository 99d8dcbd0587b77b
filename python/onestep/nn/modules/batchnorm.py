"""Batch norms, by the name PyTorch has for this module."""

from onestep.nn.modules.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, _BatchNorm, _NormBase  # noqa: F401
