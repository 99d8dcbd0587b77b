"""Parameter: a tensor that a Module counts among its own."""

from __future__ import annotations

from typing import Optional

import onestep
from onestep import _C


class Parameter(_C.Tensor):
    """A tensor that becomes a parameter of the Module it is assigned to; shares the elements of `data`."""

    def __new__(cls, data: Optional[_C.Tensor] = None, requires_grad: bool = True) -> "Parameter":
        if data is None:
            data = onestep.empty(0)
        return _C.Tensor._make_subclass(cls, data.detach(), requires_grad)

    def __init__(self, data: Optional[_C.Tensor] = None, requires_grad: bool = True) -> None:
        pass

    def __deepcopy__(self, memo: dict) -> "Parameter":
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer:
    """A tensor that becomes a buffer of the Module it is assigned to: Buffer(data, persistent=True)."""

    def __init__(self, data: Optional[_C.Tensor] = None, *, persistent: bool = True) -> None:
        self.data = onestep.empty(0) if data is None else data
        self.persistent = persistent
