"""torch.func, as far as it is there: functional_call."""

from __future__ import annotations

from collections import Counter
from typing import Any, Mapping, Optional, Sequence, Union

from onestep._C import Tensor
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
