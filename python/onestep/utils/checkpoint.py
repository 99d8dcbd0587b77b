"""Less memory for more time: a function's intermediate results are computed again in the backward pass."""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Optional

from onestep import _C


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: Optional[bool] = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    debug: bool = False,
    **kwargs: Any,
) -> Any:
    """function(*args, **kwargs), of which only the arguments are kept; gradients have the same bits as without."""
    places = [i for i, value in enumerate(args) if isinstance(value, _C.Tensor)]
    shape: list = [None]

    def run(tensors: List[_C.Tensor]) -> List[_C.Tensor]:
        given = list(args)
        for i, tensor in zip(places, tensors):
            given[i] = tensor
        result = function(*given, **kwargs)
        shape[0] = result
        return [result] if isinstance(result, _C.Tensor) else [value for value in result if isinstance(value, _C.Tensor)]

    outs = iter(_C._checkpoint(run, [args[i] for i in places]))
    result = shape[0]
    if isinstance(result, _C.Tensor):
        return next(outs)
    return type(result)(next(outs) if isinstance(value, _C.Tensor) else value for value in result)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: Optional[bool] = None, preserve_rng_state: bool = True
) -> Any:
    """The modules one after another in `segments` parts; all but the last are checkpointed."""
    modules = list(functions.children() if hasattr(functions, "children") else functions)
    size = len(modules) // segments

    def part(some: Iterable) -> Callable:
        def run(x: Any) -> Any:
            for module in some:
                x = module(x)
            return x

        return run

    last = size * (segments - 1)
    for begin in range(0, last, size):
        input = checkpoint(part(modules[begin : begin + size]), input)
    return part(modules[last:])(input)
