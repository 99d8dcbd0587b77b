"""Parameter: a tensor that a Module counts among its own."""

from __future__ import annotations

from typing import Any, Optional

import onestep
from onestep import _C


class Parameter(_C.Tensor):
    """A tensor that becomes a parameter of the Module it is assigned to; shares the elements of `data`."""

    def __new__(cls, data: Optional[_C.Tensor] = None, requires_grad: bool = True) -> "Parameter":
        if data is None:
            data = onestep.empty(0)
        if data.is_complex():
            raise NotImplementedError("Parameter: a complex tensor cannot be one (use view_as_real(data), and view_as_complex of it)")
        return _C.Tensor._make_subclass(cls, data.detach(), requires_grad)

    def __init__(self, data: Optional[_C.Tensor] = None, requires_grad: bool = True) -> None:
        pass

    def __deepcopy__(self, memo: dict) -> "Parameter":
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class _BufferType(type(_C.Tensor)):  # type: ignore[misc]
    """Buffers are tensors with a mark, as in PyTorch."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _C.Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(_C.Tensor, metaclass=_BufferType):
    """A tensor that becomes a buffer of the Module it is assigned to: Buffer(data, persistent=True)."""

    persistent: bool

    def __new__(cls, data: Optional[_C.Tensor] = None, *, persistent: bool = True) -> "Buffer":
        data = onestep.empty(0) if data is None else data
        made: Any = data.detach().requires_grad_(data.requires_grad)
        made.persistent, made._is_buffer = persistent, True
        return made


class _Uninitialized:
    """A tensor whose shape is not known yet; materialize() gives it one and makes it a plain tensor."""

    _becomes: type

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Makes it a tensor of this shape, whose values are still to be set."""
        dtype = self.dtype if dtype is None else dtype  # type: ignore[attr-defined]
        self.data = onestep.empty(shape, device=device, dtype=dtype)
        self.__class__ = self._becomes  # type: ignore[assignment]

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def detach(self) -> Any:
        """Itself: there are no elements yet."""
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, None, self.dtype)  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            dtype, requires_grad = self.dtype, self.requires_grad  # type: ignore[attr-defined]
            memo[id(self)] = type(self)(requires_grad=requires_grad, dtype=dtype)  # type: ignore[call-arg]
        return memo[id(self)]


class UninitializedParameter(_Uninitialized, Parameter):  # type: ignore[misc,override]
    """A Parameter whose shape is not known yet: those of LazyLinear and its kin before their first input."""

    _becomes = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> "UninitializedParameter":
        return _C.Tensor._make_subclass(cls, onestep.empty(0, device=device, dtype=dtype), requires_grad)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        pass


class _FormerBuffer(_C.Tensor):
    """What an UninitializedBuffer becomes: a tensor."""


class UninitializedBuffer(_Uninitialized, _C.Tensor):  # type: ignore[misc,override]
    """A buffer whose shape is not known yet."""

    _becomes = _FormerBuffer

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> "UninitializedBuffer":
        made = _C.Tensor._make_subclass(cls, onestep.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        return made

    def __init__(
        self, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> None:
        pass


def is_lazy(value: Any) -> bool:
    """Whether it is a parameter or buffer without a shape yet."""
    return isinstance(value, _Uninitialized)
