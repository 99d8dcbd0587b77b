"""torch.func, as far as it is there: functional_call, gradients of functions, and functions of batches."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from onestep import _C
from onestep._C import Tensor
from onestep._missing import module_getattr
from onestep.autograd.grad_mode import enable_grad
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


def _reaches_beyond(value: Tensor, inputs: Sequence[Tensor]) -> bool:
    """Whether value was computed from a tensor that requires grad and is none of these leaves."""
    if value.grad_fn is None:
        return value.requires_grad and all(value is not x for x in inputs)
    own = {x.view(x.shape).grad_fn.next_functions[0][0] for x in inputs}  # type: ignore[union-attr]
    found, nodes = set(own), [value.grad_fn]
    while nodes:
        for node, _ in nodes.pop().next_functions:
            if node is None or node in found:
                continue
            if not node.next_functions:
                return True
            found.add(node)
            nodes.append(node)
    return False


def _detached(tree: Any) -> Any:
    """The nest of lists, tuples and dicts with its tensors out of the graph."""
    parts = _parts(tree, None)
    if parts is None:
        return tree.detach() if isinstance(tree, Tensor) else tree
    kept = [_detached(part) for part, _ in parts]
    return dict(zip(tree, kept)) if isinstance(tree, dict) else type(tree)(kept)


def grad_and_value(func: Callable, argnums: Union[int, tuple] = 0, has_aux: bool = False) -> Callable:
    """The function (gradients with respect to args[argnums], value) of a func whose value has one element; with has_aux func returns
    (value, aux), and the second part is that pair. Gradients can be differentiated again where an argument requires grad, or another
    tensor that func uses."""
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def both(*args: Any, **kwargs: Any) -> tuple:
        inputs = list(args)
        recording = _C.is_grad_enabled()
        again = recording and any(isinstance(arg, Tensor) and arg.requires_grad for arg in args)
        with enable_grad():
            for i in chosen:
                inputs[i] = args[i].view(args[i].shape) if args[i].requires_grad else args[i].detach().requires_grad_()
            found = func(*inputs, **kwargs)
            value, *aux = found if has_aux else (found,)
            if not isinstance(value, Tensor) or value.numel() != 1 or value.dim() != 0:
                raise RuntimeError("Expected f(*args) to return a scalar tensor")
            wanted = [inputs[i] for i in chosen]
            again = again or (recording and _reaches_beyond(value, wanted))
            grads = _C._grad([value], wanted, [], None, again, True, True) if value.requires_grad else map(_C.zeros_like, wanted)
        grads = list(grads)
        second = (value, aux[0]) if has_aux else value
        return grads[0] if isinstance(argnums, int) else tuple(grads), second if again else _detached(second)

    return both


def grad(func: Callable, argnums: Union[int, tuple] = 0, has_aux: bool = False) -> Callable:
    """The function of gradients, or (gradients, aux), of grad_and_value."""

    def gradients(*args: Any, **kwargs: Any) -> Any:
        grads, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return gradients


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
