"""The memory of tensors as bytes (torch.UntypedStorage), and asarray, which takes it."""

from __future__ import annotations

from onestep import _C
from onestep._C import Tensor
from onestep._composed import _method

__all__ = ["TypedStorage", "UntypedStorage", "asarray"]


class UntypedStorage:
    """The bytes of a tensor's memory, or some of them: where they are and how many."""

    def __init__(self, tensor: Tensor):
        self._bytes = tensor.detach() if tensor.dtype == _C.uint8 else tensor.detach().view(_C.uint8)

    @classmethod
    def from_file(cls, filename, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, read when they are used; written back to it where `shared`."""
        import mmap

        with open(filename, "r+b" if shared else "rb") as file:
            mapped = mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
        return cls(_C.frombuffer(mapped, dtype=_C.uint8))

    def data_ptr(self) -> int:
        return self._bytes.data_ptr()

    def nbytes(self) -> int:
        return self._bytes.numel()

    def untyped(self) -> UntypedStorage:
        return self

    def __getitem__(self, place):
        found = self._bytes[place]
        return UntypedStorage(found) if isinstance(place, slice) else found.item()

    def __len__(self) -> int:
        return self.nbytes()

    size = __len__


class TypedStorage(UntypedStorage):
    """The same counted in elements of a dtype."""

    def __init__(self, tensor: Tensor):
        super().__init__(tensor)
        self.dtype = tensor.dtype

    def untyped(self) -> UntypedStorage:
        return UntypedStorage(self._bytes)

    def __getitem__(self, place):
        return self._bytes.view(self.dtype)[place].tolist()

    def __len__(self) -> int:
        return self.nbytes() // self.dtype.itemsize

    size = __len__


def asarray(obj, *, dtype=None, device=None, copy: bool | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor of what it is: sharing memory where it can, unless `copy`."""
    if isinstance(obj, UntypedStorage):
        obj = obj._bytes if obj.data_ptr() % 16 == 0 else obj._bytes.clone()  # that its bytes may be shown as any dtype
    found = _C.as_tensor(obj, dtype=dtype, device=device)
    return (found.clone() if copy else found).requires_grad_(requires_grad) if requires_grad or copy else found


@_method
def storage(self: Tensor) -> TypedStorage:
    """The memory that views share."""
    return TypedStorage(self._of_storage())


@_method
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory that views share."""
    return UntypedStorage(self._of_storage())
