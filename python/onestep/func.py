"""torch.func, as far as it is there: functional_call, derivatives of functions, and functions of batches."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from onestep import _C
from onestep._C import Tensor
from onestep._derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp
from onestep._missing import module_getattr
from onestep.nn.modules.module import Module
from onestep.nn.utils import stateless

__getattr__ = module_getattr("torch.func")


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Union[Mapping[str, Tensor], Sequence[Mapping[str, Tensor]]],
    args: Any = None,
    kwargs: Optional[dict] = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with these tensors, by their names in the state dict, for its own; gradients go to them."""
    given = parameter_and_buffer_dicts
    if isinstance(given, Sequence):
        if not all(isinstance(part, Mapping) for part in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        repeated = [name for name, n in Counter(name for part in given for name in part).items() if n > 1]
        if repeated:
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous"
            )
        given = {name: tensor for part in given for name, tensor in part.items()}
    if not isinstance(given, Mapping):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
        )
    return stateless._functional_call(module, given, args, kwargs, tie_weights, strict)


def _parts(tree: Any, dims: Any) -> Optional[list]:
    """What a list, tuple or dict holds, each with its dim; None of anything else."""
    if isinstance(tree, dict):
        return [(part, dims[key] if isinstance(dims, dict) else dims) for key, part in tree.items()]
    if isinstance(tree, (list, tuple)):
        return list(zip(tree, dims if isinstance(dims, (list, tuple)) else [dims] * len(tree)))
    return None


def _at(tree: Any, dims: Any, i: int) -> Any:
    """Element i of what is batched in a nest of arguments, along these dims."""
    parts = _parts(tree, dims)
    if parts is None:
        return tree if dims is None or not isinstance(tree, Tensor) else tree.select(dims, i)
    chosen = [_at(part, dim, i) for part, dim in parts]
    return dict(zip(tree, chosen)) if isinstance(tree, dict) else type(tree)(chosen)


def _size(tree: Any, dims: Any) -> Optional[int]:
    """The number of elements of the first part that is batched."""
    parts = _parts(tree, dims)
    if parts is None:
        return tree.size(dims) if isinstance(tree, Tensor) and dims is not None else None
    return next((n for n in (_size(part, dim) for part, dim in parts) if n is not None), None)


def _stacked(results: list, dims: Any) -> Any:
    first = results[0]
    if isinstance(first, (list, tuple)):
        each = dims if isinstance(dims, (list, tuple)) else [dims] * len(first)
        return type(first)(_stacked(list(parts), dim) for parts, dim in zip(zip(*results), each))
    if isinstance(first, dict):
        return {key: _stacked([result[key] for result in results], dims) for key in first}
    return first if dims is None else _C.stack(results, dims)


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: Any = None) -> Callable:
    """func of each element of a batch, its results stacked: one call an element, since nothing is vectorized here."""

    def mapped(*args: Any, **kwargs: Any) -> Any:
        n = _size(args, in_dims)
        n = _size(kwargs, 0) if n is None else n
        if not n:
            raise ValueError("vmap: needs at least one element in at least one tensor")
        return _stacked([func(*_at(args, in_dims, i), **_at(kwargs, 0, i)) for i in range(n)], out_dims)

    return mapped
