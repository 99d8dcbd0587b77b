"""Initial values, with PyTorch's draws."""

from __future__ import annotations

import math
import warnings
from typing import Any, Optional, Tuple

import onestep
from onestep import _C

Tensor = _C.Tensor


def calculate_gain(nonlinearity: str, param: Optional[float] = None) -> float:
    """The factor that keeps the scale of activations after a nonlinearity."""
    if nonlinearity in {
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "sigmoid",
    }:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draws from U(a, b)."""
    with onestep.no_grad():
        tensor.uniform_(a, b, generator=generator)
    return tensor


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draws from N(mean, std^2)."""
    with onestep.no_grad():
        tensor.normal_(mean, std, generator=generator)
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with a number."""
    with onestep.no_grad():
        tensor.fill_(val)
    return tensor


def ones_(tensor: Tensor) -> Tensor:
    """Fills with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with 0."""
    return constant_(tensor, 0.0)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Draws from N(mean, std^2) until all values lie in [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=2,
        )

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    with onestep.no_grad():
        if below((b - mean) / std) - below((a - mean) / std) > 0.3:
            low, high = (_C.tensor(bound, dtype=tensor.dtype).item() for bound in (a, b))
            result = _C.empty_like(tensor).normal_(mean, std, generator=generator)
            while True:
                outside = (result < low) | (result > high)
                if not outside.any():
                    break
                result = _C.where(outside, _C.empty_like(result).normal_(mean, std, generator=generator), result)
        else:
            peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
            result, pending = tensor, onestep.ones_like(tensor, dtype=onestep.bool)
            while pending.any():
                drawn = _C.empty_like(tensor).uniform_(a, b, generator=generator)
                result = _C.where(pending, drawn, result)
                density = ((drawn - mean) / std).pow(2).mul(-0.5).sub(peak)
                refused = _C.empty_like(tensor).uniform_(generator=generator).log() > density
                pending = pending & refused
        tensor.copy_(result)
    return tensor


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with onestep.no_grad():
        tensor.copy_(_C.eye(*tensor.shape, dtype=tensor.dtype))
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Convolution weights that keep their input: 1 in the middle of channel i's kernel i."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    out = tensor.size(0) // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    with onestep.no_grad():
        tensor.zero_()
        for group in range(groups):
            for i in range(min(out, tensor.size(1))):
                tensor[(group * out + i, i, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> Tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    kernel = math.prod(tensor.shape[2:])
    return tensor.size(1) * kernel, tensor.size(0) * kernel


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """U(-a, a), a = gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """N(0, std^2), std = gain sqrt(2 / (fan_in + fan_out))."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor)))), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """U(-b, b), b = gain sqrt(3 / fan) (He et al. 2015)."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """N(0, std^2), std = gain / sqrt(fan)."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A (semi-)orthogonal matrix [rows, all other dims] from a normal draw: the Q of its QR with a positive diagonal of R."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with onestep.no_grad():
        drawn = tensor.new_empty(rows, cols).normal_(0, 1, generator=generator)
        vectors = (drawn if rows < cols else drawn.t()).double()
        done: list = []
        for vector in vectors.unbind(0):
            for _ in range(2):  # once more against rounding
                if done:
                    basis = _C.stack(done)
                    vector = vector - _C.mv(basis.t(), _C.mv(basis, vector))
            done.append(vector / vector.norm())
        q = _C.stack(done)
        q = q if rows < cols else q.t()
        tensor.copy_(q.reshape(tensor.shape).to(tensor.dtype)).mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """N(0, std^2) with a share `sparsity` of each column set to 0."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with onestep.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(cols):
            tensor[_C.randperm(rows)[:zeros], column] = 0
    return tensor


def _renamed(function: Any) -> Any:
    """PyTorch's old name of an in-place function, without the underscore."""
    old = function.__name__[:-1]

    def initialize(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{old}_`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    initialize.__name__, initialize.__doc__ = old, f"The old name of {old}_."
    return initialize


uniform = _renamed(uniform_)
normal = _renamed(normal_)
constant = _renamed(constant_)
eye = _renamed(eye_)
dirac = _renamed(dirac_)
xavier_uniform = _renamed(xavier_uniform_)
xavier_normal = _renamed(xavier_normal_)
kaiming_uniform = _renamed(kaiming_uniform_)
kaiming_normal = _renamed(kaiming_normal_)
orthogonal = _renamed(orthogonal_)
sparse = _renamed(sparse_)
