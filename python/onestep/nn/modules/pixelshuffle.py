"""Pixel shuffles, by the name PyTorch has for this module."""

from onestep.nn.modules.linear import PixelShuffle, PixelUnshuffle  # noqa: F401
