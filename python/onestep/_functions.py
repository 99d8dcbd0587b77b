"""Functions of torch that are no ops of one signature."""

from __future__ import annotations

import math
import struct

from onestep import _C
from onestep._C import Size, Tensor
from onestep._autocast import casts

__all__ = [
    "FloatTensor", "LongTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "IntTensor", "ByteTensor", "BoolTensor", "block_diag",
    "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "chain_matmul", "compile", "einsum", "finfo", "from_dlpack",
    "get_num_threads", "get_rng_state", "iinfo",
    "initial_seed", "is_deterministic_algorithms_warn_only_enabled", "is_storage", "meshgrid", "seed", "set_float32_matmul_precision",
    "set_num_threads", "set_printoptions", "set_rng_state", "tensordot", "typename", "use_deterministic_algorithms",
    "batch_norm", "embedding", "group_norm", "instance_norm", "layer_norm",
    "set_default_device", "set_default_tensor_type",
    "are_deterministic_algorithms_enabled", "preserve_format", "contiguous_format", "channels_last", "memory_format",
]  # fmt: skip


def _unpacked(tensors) -> list[Tensor]:
    """f(a, b) and f([a, b]) are the same."""
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """Sum of products over named dims: einsum("bthd,bshd->bhts", q, k)."""
    if _C.is_autocast_enabled("cpu") and not _sums(equation):
        return _einsum_without_sums(equation, _unpacked(operands))
    return _C._einsum(equation, _unpacked(operands))


def _sums(equation: str) -> bool:
    """Whether a dim of the operands is not one of the result."""
    terms, arrow, result = equation.partition("->")
    names = [name for name in terms if name.isalpha()]
    return not set(names) <= set(result) if arrow else len(set(names)) < len(names)


@casts
def _einsum_without_sums(equation: str, operands: list[Tensor]) -> Tensor:
    return _C._einsum(equation, operands)


def meshgrid(*tensors: Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The grid of several vectors: each in the shape of all their sizes, varying along its own dim."""
    return _C._meshgrid(_unpacked(tensors), indexing)


def tensordot(a: Tensor, b: Tensor, dims=2, out: Tensor | None = None) -> Tensor:
    """Sum of products over the last `dims` dims of a and the first of b, or over two lists of dims."""
    if isinstance(dims, (tuple, list)):
        first, second = dims
        as_list = lambda d: list(d) if isinstance(d, (tuple, list)) else [d]  # noqa: E731
        return _C._tensordot(a, b, as_list(first), as_list(second), out=out)
    return _C.tensordot(a, b, int(dims), out=out)


def broadcast_shapes(*shapes) -> Size:
    """The shape that tensors of these shapes broadcast to."""
    sizes: list[int] = []
    for shape in shapes:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        sizes = [1] * (len(shape) - len(sizes)) + sizes
        for i, size in enumerate(reversed(shape), 1):
            if size < 0:
                raise _C.ShapeError(f"broadcast_shapes: negative size in {list(shape)}")
            if sizes[-i] != size and size != 1:
                if sizes[-i] != 1:
                    raise _C.ShapeError(f"broadcast_shapes: sizes {sizes[-i]} and {size} differ at dim -{i}")
                sizes[-i] = size
    return Size(sizes)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to one shape."""
    given = _unpacked(tensors)
    shape = broadcast_shapes(*[tensor.shape for tensor in given])
    return tuple(tensor.expand(shape) for tensor in given)


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with these along its diagonal."""
    blocks = [_C.atleast_2d(tensor) for tensor in _unpacked(tensors)]
    width = sum(block.shape[1] for block in blocks)
    rows, left = [], 0
    for block in blocks:
        rows.append(_C.pad(block, [left, width - left - block.shape[1]]))
        left += block.shape[1]
    return _C.cat(rows)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples of elements, one from each vector: [n1 n2 ..., count]."""
    if len(tensors) == 1:
        return tensors[0]
    return _C.stack([grid.reshape(-1) for grid in meshgrid(*tensors)], dim=-1)


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, from left to right."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = product @ matrix
    return product


# ---- random numbers


def seed() -> int:
    """Seeds the default generator with a number of the system's."""
    import os

    number = int.from_bytes(os.urandom(8), "little") >> 1
    _C._current_generator().manual_seed(number)
    return number


def initial_seed() -> int:
    """The seed of the default generator."""
    return _C._current_generator().initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's position as bytes: uint8 [n]."""
    return _C._current_generator().get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continues from what get_rng_state() returned."""
    _C._current_generator().set_state(new_state)


# PyTorch's CPUGeneratorImplState: seed, outputs left, whether it is seeded, next output, the words of the Mersenne twister, three
# doubles of which the second is a normal that waits, whether it does, and the same of a float, which is never drawn.
_STATE, _WORDS = struct.Struct("<QiiQ624Q3di4xf?3x"), struct.Struct(">624I")


def _get_state(self) -> Tensor:
    """The position in the stream as PyTorch's bytes: uint8 [5056]."""
    _, seed, position, normal, words = self._state().decode().split(" ")
    position, has_normal = int(position, 16), normal != "-"
    waiting = struct.unpack(">d", bytes.fromhex(normal))[0] if has_normal else 0.0
    numbers = _WORDS.unpack(bytes.fromhex(words))
    state = _STATE.pack(int(seed, 16), 625 - position, 1, position, *numbers, 0.0, waiting, 0.0, has_normal, 0.0, False)
    return _C.frombuffer(bytearray(state), dtype=_C.uint8)


def _set_state(self, new_state: Tensor):
    """Continues from what get_state() of this package or PyTorch's returned."""
    if not isinstance(new_state, Tensor) or new_state.dtype != _C.uint8:
        raise TypeError("expected a torch.ByteTensor, but got " + type(new_state).__name__)
    data = new_state._bytes()
    if len(data) != _STATE.size:
        raise RuntimeError(f"RNG state is wrong size: {len(data)} bytes, not {_STATE.size}")
    seed, left, seeded, position, *numbers = _STATE.unpack(data)
    words, (_, normal, _, has_normal, _, _) = numbers[:624], numbers[624:]
    if not (seeded and 0 < left <= 624 and position <= 624):
        raise RuntimeError("Invalid mt19937 state")
    waiting = struct.pack(">d", normal).hex() if has_normal else "-"
    position = 624 if left == 1 else position  # at the end, and after seeding
    hexadecimal = _WORDS.pack(*(word & 0xFFFFFFFF for word in words)).hex()
    self._set_state(f"mt19937 {seed:016x} {position:08x} {waiting} {hexadecimal}".encode())
    return self


def _with_state(state: Tensor):
    return _C.Generator().set_state(state)


setattr(_C.Generator, "get_state", _get_state)
setattr(_C.Generator, "set_state", _set_state)
setattr(_C.Generator, "__reduce__", lambda self: (_with_state, (self.get_state(),)))


# ---- NumPy's relatives


def from_dlpack(ext_tensor) -> Tensor:
    """A tensor over the memory of another library's array."""
    capsule = ext_tensor.__dlpack__() if hasattr(ext_tensor, "__dlpack__") else ext_tensor
    return _C._from_dlpack(capsule)


# ---- what a number type holds


class finfo:
    """Limits of a floating dtype."""

    _values = {
        "float16": (16, 10, -14, 15, 65504.0), "bfloat16": (16, 7, -126, 127, 3.3895313892515355e38),
        "float32": (32, 23, -126, 127, 3.4028234663852886e38), "float64": (64, 52, -1022, 1023, 1.7976931348623157e308),
    }  # fmt: skip

    def __init__(self, dtype=None):
        dtype = _C.get_default_dtype() if dtype is None else dtype
        if not dtype.is_floating_point:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{dtype}'")
        self.dtype = str(dtype)[6:]
        self.bits, mantissa, low, _, self.max = self._values[self.dtype]
        self.min, self.eps = -self.max, 2.0**-mantissa
        self.tiny = self.smallest_normal = 2.0**low
        self.resolution = 10.0 ** -math.floor(mantissa * math.log10(2))

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, dtype):
        if dtype.is_floating_point or dtype == _C.bool:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{dtype}'")
        self.dtype, self.bits = str(dtype)[6:], 8 * dtype.itemsize
        self.max = 2 ** (self.bits - dtype.is_signed) - 1
        self.min = -self.max - 1 if dtype.is_signed else 0

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


# ---- switches: what has one position here is accepted


def get_num_threads() -> int:
    """How many threads an op uses."""
    return _C._get_num_threads()


def set_num_threads(count: int) -> None:
    """Sets how many threads an op uses; the results have the same bits."""
    _C._set_num_threads(count)


def compile(model=None, **_options):
    """The model itself: there is nothing to compile."""
    return (lambda later: later) if model is None else model


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted: all results are deterministic."""


def are_deterministic_algorithms_enabled() -> bool:
    return True


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    return False


def set_default_tensor_type(t) -> None:
    """The default dtype is that of FloatTensor and so on, given as the class or by its name."""
    name = t if isinstance(t, str) else f"torch.{t.__name__}"
    kinds = {f"torch.{kind.__name__}": kind.dtype for kind in (FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor)}
    if name not in kinds:
        raise TypeError(f"set_default_tensor_type: {name} is none of {', '.join(kinds)}")
    _C.set_default_dtype(kinds[name])


def set_default_device(device) -> None:
    """Accepted for the CPU, where all tensors are."""
    _C.empty(0, device=device or "cpu")


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted: products are always of the highest precision."""


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None) -> None:
    """Sets how tensors are printed."""
    _C._set_printoptions(precision, threshold, edgeitems, linewidth, profile, sci_mode)


def is_storage(obj) -> bool:
    from onestep._storage import UntypedStorage  # which needs what is here

    return isinstance(obj, UntypedStorage)


def typename(obj) -> str:
    """The name of an object's type."""
    return obj.type() if isinstance(obj, Tensor) else f"{type(obj).__module__}.{type(obj).__qualname__}"


class memory_format:
    """Accepted where torch takes one; tensors are row-major."""

    def __init__(self, name: str):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"


preserve_format, contiguous_format, channels_last = map(memory_format, ("preserve_format", "contiguous_format", "channels_last"))


# ---- ops whose arguments have another order than in nn.functional


def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False):
    """Rows of weight: nn.functional.embedding(indices, weight)."""
    from onestep.nn import functional

    padding = None if padding_idx < 0 else padding_idx
    return functional.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def layer_norm(input: Tensor, normalized_shape, weight=None, bias=None, eps: float = 1e-05, cudnn_enable: bool = True) -> Tensor:
    """nn.functional.layer_norm."""
    return _C.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(input: Tensor, num_groups: int, weight=None, bias=None, eps: float = 1e-05, cudnn_enabled: bool = True) -> Tensor:
    """nn.functional.group_norm."""
    return _C.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(input: Tensor, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled) -> Tensor:
    """nn.functional.batch_norm."""
    return _C.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input: Tensor, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled) -> Tensor:
    """nn.functional.instance_norm."""
    return _C.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


class _TypedTensor(type):
    """FloatTensor and so on: make tensors of their dtype, and say what has it."""

    dtype: _C.dtype

    def __new__(cls, name: str, dtype):
        return super().__new__(cls, name, (), {"dtype": dtype, "__doc__": f"A tensor of {dtype}: of sizes, or of data."})

    def __init__(self, name: str, dtype):
        super().__init__(name, (), {})

    def __call__(cls, *args):
        if len(args) == 1 and isinstance(args[0], Tensor) and args[0].dtype == cls.dtype:
            return Tensor(args[0])
        if args and not isinstance(args[0], int):
            return _C.tensor(args[0], dtype=cls.dtype)
        return Tensor(*args).to(cls.dtype)

    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, Tensor) and value.dtype == cls.dtype


FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, LongTensor, IntTensor, ByteTensor, BoolTensor = (
    _TypedTensor(name, dtype) for name, dtype in (
        ("FloatTensor", _C.float32), ("DoubleTensor", _C.float64), ("HalfTensor", _C.float16), ("BFloat16Tensor", _C.bfloat16),
        ("LongTensor", _C.int64), ("IntTensor", _C.int32), ("ByteTensor", _C.uint8), ("BoolTensor", _C.bool),
    )
)  # fmt: skip
