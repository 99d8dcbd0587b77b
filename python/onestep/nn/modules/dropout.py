"""Dropout layers."""

from __future__ import annotations

from onestep import _C
from onestep.nn import functional as F
from onestep.nn.modules.module import Module


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0.0 or p > 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, zeroes each element with probability p and scales the others by 1 / (1 - p)."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps the mean and variance of selu's outputs."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels of [N, C, ...]."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of [N, C, L] or [C, L]."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of [N, C, H, W]."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of [N, C, D, H, W]."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)
