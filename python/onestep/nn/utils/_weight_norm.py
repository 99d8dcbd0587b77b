"""Weight and spectral normalisation by a hook before forward; nn.utils.parametrizations has them as parametrizations."""

from __future__ import annotations

from typing import Any, Optional

import onestep
from onestep import _C
from onestep.nn import functional as F
from onestep.nn.modules.conv import _ConvNd
from onestep.nn.modules.module import Module
from onestep.nn.parameter import Parameter, UninitializedParameter

Tensor = _C.Tensor


def norm_except_dim(v: Tensor, pow: float = 2, dim: int = 0) -> Tensor:
    """The norm over all dims but one, which are kept with size 1; over all of them with dim -1."""
    if dim == -1:
        return v.norm(pow)
    return v.norm(pow, [d for d in range(v.dim()) if d != dim], keepdim=True) if v.dim() > 1 else v.abs()


def weight_of(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """g v / |v|."""
    return v * (g / norm_except_dim(v, 2, dim))


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """weight with `dim` as rows and all others as columns."""
    return weight.movedim(dim, 0).flatten(1)


def default_dim(module: Module) -> int:
    """The dim of a weight that stands for the outputs."""
    return 1 if isinstance(module, _ConvNd) and module.transposed else 0


class _WeightHook:
    """A hook before forward that computes the weight `name` from parameters of other names."""

    name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))

    def compute_weight(self, module: Module) -> Tensor:
        raise NotImplementedError

    def check(self, module: Module) -> None:
        """Refuses a second hook of this kind, and a weight without values."""
        kind = type(self)
        what = {WeightNorm: "weight_norm", SpectralNorm: "spectral_norm"}[kind]  # type: ignore[index]
        if any(isinstance(hook, kind) and hook.name == self.name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {self.name}")
        if isinstance(getattr(module, self.name), UninitializedParameter):
            raise ValueError(f"{what}: the module must not have uninitialized parameters: run its forward before")


class WeightNorm(_WeightHook):
    """weight = weight_g weight_v / |weight_v| (Salimans and Kingma 2016)."""

    def __init__(self, name: str, dim: Optional[int]) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        return weight_of(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    def apply(self, module: Module) -> None:
        self.check(module)
        weight = getattr(module, self.name)
        del module._parameters[self.name]
        module.register_parameter(self.name + "_g", Parameter(norm_except_dim(weight, 2, self.dim).detach()))
        module.register_parameter(self.name + "_v", Parameter(weight.detach()))
        self(module, None)
        module.register_forward_pre_hook(self)

    def remove(self, module: Module) -> None:
        weight = self.compute_weight(module)
        for name in (self.name, self.name + "_g", self.name + "_v"):
            delattr(module, name)
        setattr(module, self.name, Parameter(weight.detach()))


class SpectralNorm(_WeightHook):
    """weight = weight_orig / sigma, its largest singular value by the power iteration (Miyato et al. 2018)."""

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute_weight(self, module: Module, iterate: Optional[bool] = None) -> Tensor:
        weight, u, v = (getattr(module, self.name + end) for end in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if module.training if iterate is None else iterate:
            with onestep.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
        u, v = u.clone(), v.clone()  # the backward pass of this step needs them after the next step has changed them
        return weight / _C.dot(u, matrix.mv(v))

    def apply(self, module: Module) -> None:
        self.check(module)
        weight = module._parameters[self.name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{self.name}` is None")
        with onestep.no_grad():
            u, v = (
                F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=self.eps)
                for n in as_matrix(weight, self.dim).shape
            )
        delattr(module, self.name)
        module.register_parameter(self.name + "_orig", weight)
        setattr(module, self.name, weight.detach())
        module.register_buffer(self.name + "_u", u)
        module.register_buffer(self.name + "_v", v)
        module.register_forward_pre_hook(self)

    def remove(self, module: Module) -> None:
        with onestep.no_grad():
            weight = self.compute_weight(module, False)
        for name in (self.name, self.name + "_u", self.name + "_v", self.name + "_orig"):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(weight.detach()))


def _remove(module: Module, kind: type, name: str) -> Module:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:  # type: ignore[attr-defined]
            hook.remove(module)  # type: ignore[attr-defined]
            del module._forward_pre_hooks[key]
            return module
    what = "weight_norm" if kind is WeightNorm else "spectral_norm"
    raise ValueError(f"{what} of '{name}' not found in {module}")


def weight_norm(module: Module, name: str = "weight", dim: Optional[int] = 0) -> Module:
    """Gives the module weight_g and weight_v for weight = weight_g weight_v / |weight_v|, computed before each forward."""
    WeightNorm(name, dim).apply(module)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight a parameter again."""
    return _remove(module, WeightNorm, name)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: Optional[int] = None
) -> Module:
    """Divides the weight by its largest singular value, before each forward."""
    SpectralNorm(name, n_power_iterations, default_dim(module) if dim is None else dim, eps).apply(module)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight a parameter again."""
    return _remove(module, SpectralNorm, name)
