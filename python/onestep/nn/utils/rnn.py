"""Sequences of different lengths in one tensor."""

from __future__ import annotations

from typing import List, Sequence

from onestep import _C

Tensor = _C.Tensor


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """[L_i, ...] -> [max L, B, ...], with batch_first [B, max L, ...]."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(s.size(0) for s in sequences)
    out = sequences[0].new_full((len(sequences), longest, *sequences[0].shape[1:]), padding_value)
    for row, s in zip(out, sequences):
        (row[: s.size(0)] if padding_side == "right" else row[longest - s.size(0) :]).copy_(s)
    return out if batch_first else out.transpose(0, 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> List[Tensor]:
    """The sequences of pad_sequence again."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(rows, lengths)]
