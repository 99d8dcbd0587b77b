"""Sequences of different lengths in one tensor: padded, or packed one step after another."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

from onestep import _C

Tensor = _C.Tensor


class PackedSequence_(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Optional[Tensor]
    unsorted_indices: Optional[Tensor]


class PackedSequence(PackedSequence_):
    """The rows of all sequences step by step, the longest sequence first; batch_sizes has how many sequences each step has."""

    def __new__(
        cls,
        data: Any,
        batch_sizes: Optional[Tensor] = None,
        sorted_indices: Optional[Tensor] = None,
        unsorted_indices: Optional[Tensor] = None,
    ) -> "PackedSequence":
        if batch_sizes is None:  # data is (data, batch_sizes)
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)  # type: ignore[arg-type]

    def to(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """The sequence with data.to(...); itself if that changes nothing."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self) -> "PackedSequence":
        """The sequence itself: it is on the CPU."""
        return self

    def cuda(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """Raises: there is only a CPU."""
        return self.to(device="cuda")

    def pin_memory(self) -> "PackedSequence":
        """The sequence itself: there is no other memory to copy to."""
        return self

    def double(self) -> "PackedSequence":
        return self.to(_C.float64)

    def float(self) -> "PackedSequence":
        return self.to(_C.float32)

    def half(self) -> "PackedSequence":
        return self.to(_C.float16)

    def long(self) -> "PackedSequence":
        return self.to(_C.int64)

    def int(self) -> "PackedSequence":
        return self.to(_C.int32)

    @property
    def is_cuda(self) -> bool:
        return False

    def is_pinned(self) -> bool:
        return False


def invert_permutation(permutation: Optional[Tensor]) -> Optional[Tensor]:
    """The permutation that undoes it."""
    return None if permutation is None else _C.argsort(permutation)


def _check_lengths(lengths: Tensor, rows: int) -> None:
    values = lengths.tolist()
    if len(values) != rows:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(values)} (batch_size={rows})")
    if any(n <= 0 for n in values):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in zip(values, values[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do "
            "not need ONNX exportability."
        )


def pack_padded_sequence(
    input: Tensor, lengths: Union[Tensor, Sequence[int]], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The first lengths[i] rows of each sequence of [T, B, ...], with batch_first [B, T, ...]."""
    lengths = lengths.to(_C.int64) if isinstance(lengths, Tensor) else _C.tensor(list(lengths), dtype=_C.int64)
    order = None
    if not enforce_sorted:
        lengths, order = _C.sort(lengths, descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    steps = input.transpose(0, 1) if batch_first else input
    _check_lengths(lengths, steps.size(1))
    longest = int(lengths[0])
    if longest > steps.size(0):
        raise RuntimeError(f"pack_padded_sequence: a length of {longest} in an input of {steps.size(0)} steps")
    taken = _C.arange(longest).unsqueeze(1) < lengths  # [T, B]
    places = taken.reshape(-1).nonzero().squeeze(1)
    data = steps.reshape(-1, *steps.shape[2:]).index_select(0, places)
    return PackedSequence(data, taken.sum(1), order)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    """([T, B, ...], lengths) of a packed sequence, with batch_first [B, T, ...]; T is total_length where it is given."""
    data, sizes, _, back = sequence
    steps, rows = sizes.size(0), int(sizes[0])
    if total_length is not None and total_length < steps:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {steps}"
        )
    taken = sizes.unsqueeze(1) > _C.arange(rows)  # [T, B]
    total = steps if total_length is None else total_length
    padded = data.new_full((total * rows, *data.shape[1:]), padding_value)
    padded = padded.index_copy(0, taken.reshape(-1).nonzero().squeeze(1), data).view(total, rows, *data.shape[1:])
    padded, lengths = padded.transpose(0, 1) if batch_first else padded, taken.sum(0)
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back]


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """[L_i, ...] -> [max L, B, ...], with batch_first [B, max L, ...]."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.size(0) for s in sequences)
    outer = (len(sequences), longest) if batch_first else (longest, len(sequences))
    out = sequences[0].new_full((*outer, *sequences[0].shape[1:]), padding_value)
    for row, s in zip(out if batch_first else out.transpose(0, 1), sequences):
        (row[: s.size(0)] if padding_side == "right" else row[longest - s.size(0) :]).copy_(s)
    return out


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> List[Tensor]:
    """The sequences of pad_sequence again."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(rows, lengths)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences [L_i, ...]."""
    lengths = [s.size(0) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> List[Tensor]:
    """The sequences of pack_sequence again."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
