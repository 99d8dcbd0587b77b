"""Methods of Tensor that are no ops: hooks, copies, pickling, NumPy and DLPack."""

from __future__ import annotations

import copy

from onestep import _C
from onestep._C import Tensor


def _method(function):
    """Makes a function a method of Tensor; a _ at the end keeps the name of a built-in free."""
    function.__name__ = "type" if function.__name__ == "type_" else function.__name__
    setattr(Tensor, function.__name__, function)
    return function


# ---- hooks


@_method
def register_hook(self, hook):
    """Calls hook(grad) in every backward pass; what it returns, if not None, takes the gradient's place."""
    return _C._register_hook(self, hook)


@_method
def register_post_accumulate_grad_hook(self, hook):
    """Calls hook(leaf) after a backward pass has added to its .grad."""
    return _C._register_post_accumulate_grad_hook(self, hook)


@_method
def detach_(self):
    """Takes the tensor out of the graph."""
    if self.is_leaf:
        return self.requires_grad_(False)
    if self._base is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    return self._leave_graph()


# ---- copies


@_method
def __deepcopy__(self, memo):
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment")
    if id(self) in memo:
        return memo[id(self)]
    storage = self._of_storage()
    key = ("storage", storage.data_ptr(), self.dtype)  # what shares memory shares it in the copy, too
    if key not in memo:
        memo[key] = storage.clone()
    copied = memo[key].as_strided(self.shape, self.stride(), self.storage_offset()).detach()
    result = memo[id(self)] = Tensor._make_subclass(type(self), copied, self.requires_grad)
    result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    return result


def _rebuild(cls, data: bytes, dtype, shape, requires_grad: bool, attributes: dict):
    values = _C.frombuffer(bytearray(data), dtype=dtype).reshape(shape) if data else _C.empty(shape, dtype=dtype)
    result = Tensor._make_subclass(cls, values, requires_grad)
    result.__dict__.update(attributes)
    return result


@_method
def __reduce_ex__(self, protocol):
    data = self.detach().contiguous()._bytes()
    return _rebuild, (type(self), data, self.dtype, tuple(self.shape), self.requires_grad, dict(self.__dict__))


# ---- NumPy and DLPack


def _no_grad_to_array(self) -> None:
    if self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self.dtype == _C.bfloat16:
        raise TypeError("Got unsupported ScalarType BFloat16")


@_method
def numpy(self, *, force: bool = False):
    """A NumPy array over the same memory. Writes through it are not counted: a tensor that a graph saved must not be written
    to that way before its backward pass."""
    if force:
        self = self.detach()
    _no_grad_to_array(self)
    import numpy as np

    return np.asarray(memoryview(self))


@_method
def __array__(self, dtype=None, copy=None):
    array = self.numpy()
    if dtype is None or array.dtype == dtype:
        return array.copy() if copy else array
    return array.astype(dtype)


@_method
def __array_wrap__(self, array, context=None, return_scalar=False):
    return _C.from_numpy(array)


Tensor.__array_priority__ = 1000  # NumPy leaves `array * tensor` to Tensor


@_method
def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return _C._to_dlpack(self.clone() if copy else self)


@_method
def __dlpack_device__(self):
    return (1, 0)  # the CPU


# ---- what Python asks of an object


@_method
def __contains__(self, element):
    return bool((self == element).any())


@_method
def __format__(self, spec):
    if self.dim() == 0 and self.__class__ is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


@_method
def __reversed__(self):
    return self.flip(0) if self.dim() else self


@_method
def __dir__(self):
    return sorted(set(object.__dir__(self)))


@_method
def _repr_html_(self) -> str:
    import html

    sizes = " x ".join(str(n) for n in self.shape) or "scalar"
    return f"<pre>{html.escape(str(self))}</pre><small>{sizes}, {self.dtype}</small>"


# ---- under other names


@_method
def type_(self, dtype=None, non_blocking=False):
    """The name of the tensor's type, or the tensor in another dtype."""
    names = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
             "int32": "Int", "uint8": "Byte", "bool": "Bool"}  # fmt: skip
    if dtype is None:
        return f"torch.{names[str(self.dtype)[6:]]}Tensor"
    if isinstance(dtype, str):
        wanted = {f"torch.{tensor}Tensor": name for name, tensor in names.items()}
        dtype = getattr(_C, wanted[dtype])
    return self.to(_C.get_default_dtype() if dtype is Tensor else getattr(dtype, "dtype", dtype))  # FloatTensor and so on have one


@_method
def cuda(self, device=None, non_blocking=False, memory_format=None):
    """There is no CUDA: raises as to("cuda") does."""
    return self.to("cuda")


@_method
def apply_(self, function):
    """Replaces every element by function(element)."""
    flat = [function(value) for value in self.reshape(-1).tolist()]
    return self.copy_(_C.tensor(flat, dtype=self.dtype).reshape(self.shape))


def _shape_in_place(name: str):
    def method(self, *args):
        if self.requires_grad or not self.is_leaf:
            raise NotImplementedError(f"{name}_: of a tensor in a graph (use {name})")
        self.data = getattr(_C, name)(self, *args)
        return self

    method.__name__ = name + "_"
    return method


for _name in ("t", "transpose", "squeeze", "unsqueeze"):
    _method(_shape_in_place(_name))
del _name
