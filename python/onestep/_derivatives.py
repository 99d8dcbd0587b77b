"""Derivatives of functions as functions (torch.func), all by backward passes. Arguments and results are tensors, or nests of tuples,
lists and dicts with tensors in them."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Tuple, Union

from onestep import _C
from onestep._C import Tensor
from onestep.autograd.grad_mode import enable_grad
from onestep.utils._pytree import tree_flatten, tree_map, tree_unflatten

Argnums = Union[int, Tuple[int, ...]]


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


def _tensors(tree: Any, what: str, error: type = RuntimeError) -> list:
    """The leaves, which have to be tensors."""
    leaves = tree_flatten(tree)[0]
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise error(f"{what}: expected tensors, got {type(leaf)}")
    return leaves


def _fresh(tree: Any) -> Any:
    """Tensors with the same numbers of which nothing was computed yet; part of the graph if they are part of one."""
    return tree_map(lambda x: x.view(x.shape) if x.requires_grad else x.detach().requires_grad_(), tree)


def _detached(tree: Any) -> Any:
    return tree_map(lambda x: x.detach() if isinstance(x, Tensor) else x, tree)


class _Evaluation:
    """func of fresh inputs, to differentiate with respect to some of its arguments. Derivatives can be differentiated again where an
    argument requires grad, or another tensor that func uses."""

    def __init__(self, name: str, func: Callable, args: Sequence[Any], kwargs: dict, chosen: Sequence[int], has_aux: bool):
        self.inputs = list(args)
        recording = _C.is_grad_enabled()
        given = [x for arg in args for x in tree_flatten(arg)[0] if isinstance(x, Tensor)]
        with enable_grad():
            for i in chosen:
                _tensors(args[i], name, ValueError)
                self.inputs[i] = _fresh(args[i])
            found = func(*self.inputs, **kwargs)
        if has_aux and not (isinstance(found, tuple) and len(found) == 2):
            raise RuntimeError(f"{name}(has_aux=True): the function has to return (output, aux)")
        self.output: Any
        self.aux: Any
        self.output, self.aux = found if has_aux else (found, None)
        self.outputs = _tensors(self.output, name)
        self.wanted, self.nest = tree_flatten([self.inputs[i] for i in chosen])
        self.again = recording and (
            any(x.requires_grad for x in given) or any(_reaches_beyond(y, self.wanted) for y in self.outputs)
        )

    def gradients(self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], create_graph: bool, retain: bool) -> list:
        """For each chosen argument its nest of gradients."""
        pairs = [(y, g) for y, g in zip(outputs, cotangents) if y.requires_grad]
        if not pairs:
            return tree_unflatten([_C.zeros_like(x) for x in self.wanted], self.nest)
        differentiable, grads = zip(*pairs)
        found = _C._grad(list(differentiable), self.wanted, list(grads), retain or None, create_graph, True, True)
        return tree_unflatten(list(found), self.nest)

    def result(self, tree: Any) -> Any:
        return tree if self.again else _detached(tree)


def grad_and_value(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """The function (gradients with respect to args[argnums], value) of a func whose value has one element; with has_aux func returns
    (value, aux), and the second part is that pair. Gradients can be differentiated again where an argument requires grad, or another
    tensor that func uses."""
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def both(*args: Any, **kwargs: Any) -> tuple:
        at = _Evaluation("grad", func, args, kwargs, chosen, has_aux)
        value = at.output
        if not isinstance(value, Tensor) or value.numel() != 1 or value.dim() != 0:
            raise RuntimeError("Expected f(*args) to return a scalar tensor")
        grads = at.gradients([value], [_C.ones_like(value)], at.again, False)
        second = (value, at.aux) if has_aux else value
        return grads[0] if isinstance(argnums, int) else tuple(grads), at.result(second)

    return both


def grad(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """The function of gradients, or (gradients, aux), of grad_and_value."""

    def gradients(*args: Any, **kwargs: Any) -> Any:
        grads, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return gradients


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(func(*primals), f), or with has_aux (.., f, aux): f(v), v like the output, is the tuple of v^T J for each of primals."""
    at = _Evaluation("vjp", func, primals, {}, range(len(primals)), has_aux)

    def product(cotangents: Any, retain_graph: bool = True, create_graph: Any = None) -> tuple:
        v = _tensors(cotangents, "vjp")
        if [x.shape for x in v] != [y.shape for y in at.outputs]:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function: "
                f"{[tuple(y.shape) for y in at.outputs]}, got {[tuple(x.shape) for x in v]}"
            )
        again = at.again or any(x.requires_grad for x in v) if create_graph is None else create_graph
        return tuple(at.gradients(at.outputs, v, again, retain_graph))

    return (at.result(at.output), product, at.result(at.aux)) if has_aux else (at.result(at.output), product)


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """(func(*primals), J tangents), or with has_aux (.., .., aux), by two backward passes."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"jvp: Expected primals to be a tuple. E.g. it should be valid to call f(*primals). Got {type(primals)}")
    at = _Evaluation("jvp", func, primals, {}, range(len(primals)), has_aux)
    along = _tensors(tangents, "jvp")
    if [x.shape for x in along] != [x.shape for x in at.wanted]:
        raise RuntimeError("jvp: expected tangents with the shapes of primals")
    v = [_C.zeros_like(y).requires_grad_() for y in at.outputs]
    grads = tree_flatten(at.gradients(at.outputs, v, True, True))[0]
    pairs = [(g, t) for g, t in zip(grads, along) if g.requires_grad]
    again = at.again or any(t.requires_grad for t in along)
    if pairs:
        linear, directions = zip(*pairs)
        products = list(_C._grad(list(linear), v, list(directions), None, again, True, True))
    else:
        products = [_C.zeros_like(y) for y in at.outputs]
    product = tree_unflatten(products, tree_flatten(at.output)[1])
    return (at.result(at.output), product, at.result(at.aux)) if has_aux else (at.result(at.output), product)


def jacrev(func: Callable, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: Any = None, **_: Any) -> Callable:
    """The function of all derivatives, [output..., input...] for each output and args[argnums]: one backward pass an output's element."""
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        at = _Evaluation("jacrev", func, args, kwargs, chosen, has_aux)

        def of(output: Tensor) -> Any:
            """Each input's nest of derivatives."""
            units = _C.eye(output.numel(), dtype=output.dtype).reshape(-1, *output.shape)
            rows = [tree_flatten(at.gradients([output], [unit], at.again, True))[0] for unit in units]
            parts = [_C.stack(part).reshape(*output.shape, *x.shape) for part, x in zip(zip(*rows), at.wanted)]
            nests = tree_unflatten(parts, at.nest)
            return nests[0] if isinstance(argnums, int) else tuple(nests)

        found = tree_unflatten([of(output) for output in at.outputs], tree_flatten(at.output)[1])
        return (found, at.result(at.aux)) if has_aux else found

    return jacobian


jacfwd = jacrev  # the same derivatives, which PyTorch computes column by column


def hessian(func: Callable, argnums: Argnums = 0) -> Callable:
    """The function of all second derivatives, [output..., input..., input...]"""
    return jacrev(jacrev(func, argnums), argnums)
