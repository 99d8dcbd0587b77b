"""A module with other parameters and buffers for one call."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Dict, Iterator, Mapping, Optional

from onestep import _C
from onestep.nn.modules.module import Module

Tensor = _C.Tensor


def _store(module: Module, full: str, name: str) -> Dict[str, Any]:
    for store in (module._parameters, module._buffers):
        if name in store:
            return store
    raise AttributeError(f"{module._get_name()} has no attribute `{full}`")


@contextmanager
def _replaced(module: Module, given: Mapping[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    """Puts the given tensors in their places; with tie_weights also in those that share the tensor."""
    places = dict(module.named_parameters(remove_duplicate=False))
    places.update(module.named_buffers(remove_duplicate=False))
    wanted = dict(given)
    if tie_weights:
        by_id = {id(places[name]): tensor for name, tensor in given.items() if name in places}
        wanted.update({name: by_id[id(held)] for name, held in places.items() if id(held) in by_id and name not in given})
    if strict:
        sides = (("Unexpected", set(given) - set(places)), ("Missing", set(places) - set(wanted)))
        lines = [f"\n\t{what} key(s): {', '.join(map(repr, sorted(names)))}." for what, names in sides if names]
        if lines:
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:{''.join(lines)}")
    before = []
    try:
        for name, tensor in wanted.items():
            path, _, last = name.rpartition(".")
            store = _store(module.get_submodule(path), name, last) if name in places or path else None
            if store is not None:
                before.append((store, last, store[last]))
                store[last] = tensor
        yield
    finally:
        for store, last, held in reversed(before):
            store[last] = held


def _functional_call(
    module: Module, tensors: Mapping[str, Tensor], args: Any, kwargs: Optional[dict], tie_weights: bool, strict: bool
) -> Any:
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, tensors, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: Optional[dict] = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with these tensors, by their names in the state dict, for its own; gradients go to them."""
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights, strict)
