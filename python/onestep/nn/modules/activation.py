"""Activations."""

from __future__ import annotations

from typing import Any, Optional

import onestep
from onestep import _C
from onestep.nn import functional as F
from onestep.nn.modules.module import Module
from onestep.nn.parameter import Parameter


class _Inplace(Module):
    """An activation that may write over its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""

    def _also(self, text: str) -> str:
        return text + (", inplace=True" if self.inplace else "")


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.sigmoid(input)


class Tanh(Module):
    """tanh(x)."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.tanh(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.tanhshrink(input)


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.logsigmoid(input)


class ReLU(_Inplace):
    """max(x, 0)."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.relu(input, self.inplace)


class ReLU6(_Inplace):
    """min(max(x, 0), 6)."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.relu6(input, self.inplace)


class SiLU(_Inplace):
    """x sigmoid(x)."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """x tanh(softplus(x))."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.mish(input, self.inplace)


class Hardsigmoid(_Inplace):
    """min(max(x + 3, 0), 6) / 6."""

    extra_repr = Module.extra_repr  # PyTorch's does not tell

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_Inplace):
    """x hardsigmoid(x)."""

    extra_repr = Module.extra_repr  # PyTorch's does not tell

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.hardswish(input, self.inplace)


class SELU(_Inplace):
    """elu scaled so that means and variances are kept (Klambauer et al. 2017)."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.selu(input, self.inplace)


class LeakyReLU(_Inplace):
    """x, or negative_slope x below 0."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return self._also(f"negative_slope={self.negative_slope}")


class RReLU(_Inplace):
    """x, or below 0 a slope times x: drawn from [lower, upper] in training, else their mean."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower, self.upper = lower, upper

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return self._also(f"lower={self.lower}, upper={self.upper}")


class ELU(_Inplace):
    """x, or alpha (exp(x) - 1) below 0."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return self._also(f"alpha={self.alpha}")


class CELU(_Inplace):
    """max(x, 0) + min(alpha (exp(x / alpha) - 1), 0)."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return self._also(f"alpha={self.alpha}")


class Hardtanh(_Inplace):
    """x cut to [min_val, max_val]."""

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: Optional[float] = None,
        max_value: Optional[float] = None,
    ) -> None:
        super().__init__(inplace)
        self.min_val = min_val if min_value is None else min_value  # the names of long ago
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val must be larger than min_val: got {self.max_val} and {self.min_val}")

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return self._also(f"min_val={self.min_val}, max_val={self.max_val}")


class Threshold(_Inplace):
    """x where it is above the threshold, else value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold, self.value = threshold, value

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return self._also(f"threshold={self.threshold}, value={self.value}")


class Softplus(Module):
    """log(1 + exp(beta x)) / beta, x where beta x is above the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardshrink(Module):
    """x where |x| is above lambd, else 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Module):
    """x moved by lambd towards 0, 0 where |x| is at most lambd."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class GLU(Module):
    """a sigmoid(b) of the halves a, b along dim."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(Module):
    """exp(x) over its sum along dim."""

    def __init__(self, dim: Optional[int] = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """log of softmax along dim."""

    def __init__(self, dim: Optional[int] = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(Module):
    """softmax(-x) along dim."""

    def __init__(self, dim: Optional[int] = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.softmin(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax2d(Module):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class GELU(Module):
    """x Phi(x), or its approximation by tanh."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class PReLU(Module):
    """x, or weight x below 0, with a learned weight [num_parameters]."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(onestep.full((num_parameters,), float(init), device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Sets the weight to `init`."""
        with onestep.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
