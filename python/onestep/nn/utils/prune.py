"""Pruning: a parameter becomes a mask times name_orig, computed before each forward."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Iterable, Optional, Tuple, Union

from onestep import _C
from onestep.nn.modules.module import Module

Tensor = _C.Tensor
Amount = Union[int, float]


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if float(amount) < 0 or (not isinstance(amount, Integral) and float(amount) > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count(amount: Amount, size: int) -> int:
    """How many of `size` are pruned: a number, or a share."""
    if not isinstance(amount, Integral):
        return round(float(amount) * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return int(amount)


class BasePruningMethod:
    """A hook before forward; compute_mask(importance, mask) says what stays of what the mask has left."""

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask: `default_mask`, with 0 for what is pruned by the importance t."""
        raise NotImplementedError

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Module) -> Tensor:
        """The pruned tensor of the module."""
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(original.dtype) * original

    def prune(self, t: Tensor, default_mask: Optional[Tensor] = None, importance_scores: Optional[Tensor] = None) -> Tensor:
        """t pruned by this method, without a module."""
        mask = _C.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, mask)

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Optional[Tensor] = None, **kwargs: Any) -> Any:
        """Prunes the parameter `name` of the module, or more of it where it is pruned already."""
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        for key, hook in list(module._forward_pre_hooks.items()):
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
                del module._forward_pre_hooks[key]
                before = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
                before.add_pruning_method(method)
                method = before
        tensor = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != tensor.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        importance = tensor if importance_scores is None else importance_scores
        if isinstance(method, PruningContainer):
            mask = getattr(module, name + "_mask").detach().clone()
        else:
            module.register_parameter(name + "_orig", module._parameters.pop(name))
            mask = _C.ones_like(tensor).detach()
        try:
            mask = method.compute_mask(importance.detach(), mask)
        except Exception:
            if not isinstance(method, PruningContainer):
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        module.register_buffer(name + "_mask", mask)
        method(module, None)
        module.register_forward_pre_hook(method)
        return method

    def remove(self, module: Module) -> None:
        """Makes the pruned values the parameter's own."""
        name, weight = self._tensor_name, self.apply_mask(module)
        original = module._parameters[name + "_orig"]
        for attribute in (name, name + "_orig", name + "_mask"):
            delattr(module, attribute)
        original.data = weight.detach()
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Pruning methods of one tensor, applied one after another."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: Tuple[BasePruningMethod, ...] = ()
        for method in args:
            self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Optional[BasePruningMethod]) -> None:
        """Adds a method of the same tensor."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, i: Any) -> Any:
        return self._pruning_methods[i]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method, mask = self._pruning_methods[-1], default_mask.to(t.dtype).clone()
        if method.PRUNING_TYPE == "unstructured":
            left: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()  # type: ignore[attr-defined]
            alive = mask.movedim(dim, 0).flatten(1).sum(1) != 0
            left = (slice(None),) * dim + (alive,)
        else:
            left = (slice(None),) * t.dim()
        mask[left] = method.compute_mask(t[left], mask[left])
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Unstructured(BasePruningMethod):
    def __init__(self, amount: Amount) -> None:
        _check_amount(amount)
        self.amount = amount

    def _importance(self, t: Tensor) -> Tensor:
        """The elements of the largest of these are pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count, mask = _count(self.amount, t.numel()), default_mask.clone()
        if count:
            places = _C.topk(self._importance(t).reshape(-1), count)[1]
            mask = mask.reshape(-1).index_fill(0, places, 0).view(mask.shape)
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def _importance(self, t: Tensor) -> Tensor:
        return _C.rand_like(t)


class L1Unstructured(_Unstructured):
    """Prunes the elements of the least absolute value."""

    def _importance(self, t: Tensor) -> Tensor:
        return -t.abs()


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: Amount, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def _kept(self, t: Tensor, count: int) -> Tensor:
        """The channels along dim that stay, as a mask or as places."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = _count(self.amount, t.size(self.dim))
        if count == 0:
            return default_mask
        mask = _C.zeros_like(t)
        mask.movedim(self.dim, 0)[self._kept(t, count)] = 1
        return mask * default_mask


class RandomStructured(_Structured):
    """Prunes channels at random."""

    def _kept(self, t: Tensor, count: int) -> Tensor:
        draws = _C.rand(t.size(self.dim))
        return draws > _C.kthvalue(draws, count)[0]


class LnStructured(_Structured):
    """Prunes the channels of the least norm of order n."""

    def __init__(self, amount: Amount, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t: Tensor, count: int) -> Tensor:
        norms = t.norm(self.n, [d for d in range(t.dim()) if d != self.dim % t.dim()])
        return _C.topk(norms, t.size(self.dim) - count)[1]


class CustomFromMask(BasePruningMethod):
    """Prunes where the given mask is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Gives the parameter a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Amount) -> Module:
    """Prunes elements at random: a number of them, or a share."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Amount, importance_scores: Optional[Tensor] = None) -> Module:
    """Prunes the elements of the least absolute value, or of the least importance_scores."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Amount, dim: int) -> Module:
    """Prunes channels along dim at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: Amount, n: Any, dim: int, importance_scores: Optional[Tensor] = None
) -> Module:
    """Prunes the channels along dim of the least norm of order n."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes where the mask is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[Tuple[Module, str]], pruning_method: Any, importance_scores: Optional[dict] = None, **kwargs: Any
) -> None:
    """Prunes the elements of all (module, name) together."""
    pairs, scores = list(parameters), importance_scores or {}
    if pruning_method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type '
            f"{pruning_method.PRUNING_TYPE}"
        )
    tensors = [getattr(module, name) for module, name in pairs]
    flat = [scores.get(pair, tensor).detach().reshape(-1) for pair, tensor in zip(pairs, tensors)]
    masks = [getattr(m, n + "_mask", _C.ones_like(t)).detach().reshape(-1) for (m, n), t in zip(pairs, tensors)]
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    mask = PruningContainer(method).compute_mask(_C.cat(flat), _C.cat(masks))
    for (module, name), tensor, part in zip(pairs, tensors, mask.split([t.numel() for t in tensors])):
        custom_from_mask(module, name, part.view(tensor.shape))


def remove(module: Module, name: str) -> Module:
    """Makes the pruned values of the parameter its own, without a mask."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module, or of one below it, is pruned."""
    hooks = (hook for part in module.modules() for hook in part._forward_pre_hooks.values())
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)
