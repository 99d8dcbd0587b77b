"""Complex tensors: pairs of real ones, so that whatever is done to them is differentiable.

What rotates queries and keys by complex numbers, and what computes with spectra, needs few ops; the others say that they are missing.
Ops reach a complex tensor by PyTorch's own protocol for what is like a tensor (`__torch_function__`)."""

from __future__ import annotations

import math
import re
from typing import Any

from onestep import _C
from onestep._C import Tensor

__all__ = [
    "ComplexTensor", "angle", "cdouble", "cfloat", "chalf", "complex", "complex128", "complex32", "complex64", "imag", "polar",
    "view_as_complex", "view_as_real",
]  # fmt: skip

_number = complex
Complex = Any  # a ComplexTensor, in annotations: the ops of tensors take it


class ComplexDType:
    """The dtype of complex tensors whose two parts are of `to_real()`."""

    is_floating_point, is_complex, is_signed = False, True, True

    def __init__(self, itemsize: int, part: Any) -> None:
        self.itemsize, self._part = itemsize, part

    def to_real(self) -> Any:
        """The dtype of the parts."""
        return self._part

    def to_complex(self) -> "ComplexDType":
        """Itself."""
        return self

    def __repr__(self) -> str:
        return f"torch.complex{8 * self.itemsize}"

    def __reduce__(self) -> str:
        return f"complex{8 * self.itemsize}"

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        return ComplexTensor.__torch_function__(func, types, args, kwargs)


complex32: ComplexDType = ComplexDType(4, _C.float16)
complex64: ComplexDType = ComplexDType(8, _C.float32)
complex128: ComplexDType = ComplexDType(16, _C.float64)
chalf: ComplexDType = complex32
cfloat: ComplexDType = complex64
cdouble: ComplexDType = complex128
_OF_PART = {dtype.to_real(): dtype for dtype in (complex32, complex64, complex128)}


def _operator(name: str, reflected: bool = False) -> Any:
    def call(self: Any, other: Any) -> Any:
        if not isinstance(other, (Tensor, int, float, _number)):
            return NotImplemented
        a, b = (as_complex(other, self), self) if reflected else (self, other)
        return rule_of(getattr(Tensor, name))(a, b)

    return call


def _in_place(name: str) -> Any:
    def call(self: Any, other: Any) -> Any:
        return self.copy_(rule_of(getattr(Tensor, name))(self, other))

    return call


class ComplexTensor:
    """real + i imag, of two real tensors of one shape and dtype."""

    __array_priority__ = 1000

    def __init__(self, real: Tensor, imag: Tensor) -> None:
        if real.dtype not in _OF_PART or real.dtype != imag.dtype:
            raise RuntimeError(
                f"complex: the parts must both be of float16, float32 or float64, and are of {real.dtype} and {imag.dtype}"
            )
        real, imag = (real, imag) if real.shape == imag.shape else (real + _C.zeros_like(imag), imag + _C.zeros_like(real))
        self.real, self.imag = real, imag

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        return rule_of(func)(*args, **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        method = None if name.startswith("__") else getattr(Tensor, name, None)
        if not callable(method):
            raise AttributeError(f"'ComplexTensor' object has no attribute '{name}'")
        rule = rule_of(method)
        return lambda *args, **kwargs: rule(self, *args, **kwargs)

    # ---- what it is

    __class__ = property(lambda self: Tensor)  # type: ignore[assignment]  # what programs ask is whether it is a tensor

    dtype = property(lambda self: _OF_PART[self.real.dtype])
    shape = property(lambda self: self.real.shape)
    ndim = property(lambda self: self.real.ndim)
    device = property(lambda self: self.real.device)
    layout = property(lambda self: self.real.layout)
    is_leaf = property(lambda self: self.real.is_leaf and self.imag.is_leaf)
    requires_grad = property(lambda self: self.real.requires_grad or self.imag.requires_grad)
    T = property(lambda self: ComplexTensor(self.real.T, self.imag.T))
    mT = property(lambda self: ComplexTensor(self.real.mT, self.imag.mT))
    H = property(lambda self: self.T.conj())
    mH = property(lambda self: self.mT.conj())
    data = property(lambda self: self.detach())

    @property
    def grad(self) -> Any:
        """dL/dreal + i dL/dimag, as in PyTorch."""
        return self._grad_of_parts(self.real.grad, self.imag.grad)

    def _grad_of_parts(self, *grads: Any) -> Any:
        if grads[0] is None and grads[1] is None:
            return None
        return ComplexTensor(*(_C.zeros_like(self.real) if grad is None else grad for grad in grads))

    def backward(self: Complex, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None) -> None:
        """Adds the gradients of the real part of sum(self * conj(gradient)) to the .grad of every leaf."""
        from onestep.autograd import backward

        backward([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or its size at `dim`."""
        return self.real.size() if dim is None else self.real.size(dim)

    def dim(self) -> int:
        """The number of dims."""
        return self.real.dim()

    def numel(self) -> int:
        """The number of elements."""
        return self.real.numel()

    nelement = numel

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def requires_grad_(self, requires_grad: bool = True) -> Complex:
        """Whether gradients of it are wanted."""
        self.real, self.imag = (part if part.is_leaf and part._base is None else part.clone() for part in (self.real, self.imag))
        self.real.requires_grad_(requires_grad)
        self.imag.requires_grad_(requires_grad)
        return self

    def __len__(self) -> int:
        return len(self.real)

    def __iter__(self) -> Any:
        return iter(self.unbind(0))

    def __bool__(self) -> bool:
        return self.item() != 0

    def __hash__(self) -> int:
        return id(self)

    # ---- as Python's and NumPy's

    def tolist(self) -> Any:
        """Nested lists of complex numbers."""

        def join(re: Any, im: Any) -> Any:
            return [join(*pair) for pair in zip(re, im)] if isinstance(re, list) else _number(re, im)

        return join(self.real.tolist(), self.imag.tolist())

    def item(self) -> _number:
        """The only element."""
        return _number(self.real.item(), self.imag.item())

    __complex__ = item

    def numpy(self) -> Any:
        """A NumPy array with these values."""
        import numpy

        values = numpy.empty(tuple(self.shape), numpy.complex128 if self.dtype is complex128 else numpy.complex64)
        values.real, values.imag = self.real.numpy(), self.imag.numpy()
        return values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self) -> str:
        number = r"[-+]?(?:nan|inf|\d[\d.e+-]*)"
        imag = iter(re.findall(number, repr(self.imag.detach().to(_C.float32))))
        part = repr(self.real.detach().to(_C.float32)).removesuffix(")")
        joined = re.sub(number, lambda real: f"{real[0]}{'' if (im := next(imag))[0] in '+-' else '+'}{im}j", part)
        kind = "" if self.dtype is complex64 else f", dtype={self.dtype}"
        return f"{joined}{kind}{', requires_grad=True' if self.requires_grad else ''})"

    # ---- operators

    __add__, __radd__ = _operator("add"), _operator("add", True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", True)
    __truediv__, __rtruediv__ = _operator("div"), _operator("div", True)
    __matmul__, __rmatmul__ = _operator("matmul"), _operator("matmul", True)
    __pow__, __rpow__ = _operator("pow"), _operator("pow", True)
    __eq__, __ne__ = _operator("eq"), _operator("ne")
    __iadd__ = add_ = _in_place("add")
    __isub__ = sub_ = _in_place("sub")
    __imul__ = mul_ = _in_place("mul")
    __itruediv__ = div_ = _in_place("div")

    def __neg__(self) -> Complex:
        return ComplexTensor(-self.real, -self.imag)

    def __abs__(self) -> Tensor:
        return rule_of(Tensor.abs)(self)

    # ---- elements

    def __getitem__(self, key: Any) -> Complex:
        return ComplexTensor(self.real[key], self.imag[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        value = as_complex(value, self)
        self.real[key], self.imag[key] = value.real, value.imag

    def copy_(self, other: Any, non_blocking: bool = False) -> Complex:
        """Takes the values of another."""
        self[...] = other
        return self

    def zero_(self) -> Complex:
        """All 0."""
        return self.copy_(0)

    def __reduce__(self) -> Any:
        return ComplexTensor, (self.real, self.imag)

    def __deepcopy__(self, memo: Any) -> Complex:
        import copy

        return memo.setdefault(id(self), ComplexTensor(copy.deepcopy(self.real, memo), copy.deepcopy(self.imag, memo)))


# ---- making and taking apart


def complex(real: Tensor, imag: Tensor) -> Complex:  # noqa: A001 - torch's name
    """real + i imag."""
    return ComplexTensor(real, imag)


def polar(abs: Tensor, angle: Tensor) -> Complex:  # noqa: A002 - torch's name
    """abs (cos angle + i sin angle)."""
    return ComplexTensor(abs * angle.cos(), abs * angle.sin())


def view_as_complex(input: Tensor) -> Complex:
    """[..., 2] -> [...]: the real and the imaginary part lie side by side in the last dim; shares the memory."""
    if input.dim() == 0 or input.shape[-1] != 2:
        raise RuntimeError(f"view_as_complex: the last dim must be of size 2: got {list(input.shape)}")
    return ComplexTensor(input[..., 0], input[..., 1])


def view_as_real(input: Complex) -> Tensor:
    """[...] -> [..., 2]: the real and the imaginary part side by side."""
    if not isinstance(input, ComplexTensor):
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return _C.stack([input.real, input.imag], -1)


def imag(input: Complex) -> Tensor:
    """The imaginary part."""
    if not isinstance(input, ComplexTensor):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return input.imag


def angle(input: Any) -> Tensor:
    """The angle of the number in the plane, in (-pi, pi]; of a real one 0 or pi."""
    if isinstance(input, ComplexTensor):
        return _C.atan2(input.imag, input.real)
    x = input if input.is_floating_point() else input.to(_C.get_default_dtype())
    return _C.where(x.isnan(), x, (x < 0).to(x.dtype) * math.pi)


def as_complex(value: Any, like: Any = None) -> Complex:
    """A number, a real tensor or a complex one; in the precision of `like` where it has none."""
    if isinstance(value, ComplexTensor):
        return value
    if isinstance(value, Tensor):
        value = value if value.is_floating_point() else value.to(_C.get_default_dtype())
        return ComplexTensor(value, _C.zeros_like(value))
    part = _part_of(like)
    return ComplexTensor(_C.tensor(value.real, dtype=part), _C.tensor(value.imag, dtype=part))


def _part_of(value: Any) -> Any:
    """The dtype of the parts of what a number meets in `value`."""
    if isinstance(value, ComplexTensor):
        return value.real.dtype
    return value.dtype if isinstance(value, Tensor) and value.is_floating_point() else _C.get_default_dtype()


def operand(number: _number, other: Tensor) -> Complex:
    """Python's complex number as what meets the real tensor in an operator."""
    return as_complex(number, other)


from onestep._complex_rules import rule_of  # noqa: E402 - which needs the class
