"""Samples into batches."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional

import onestep
from onestep import _C


class WorkerInfo(NamedTuple):
    """Which of the loader's workers runs here."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


current = threading.local()


class _Told(str):
    """A text that a KeyError, too, shows as it is."""

    __repr__ = str.__str__


class Worker:
    """What runs within it is the worker: get_worker_info() tells so, and draws come from a generator of its own."""

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.info = WorkerInfo(id, num_workers, seed, dataset)
        self.generator = _C.Generator().manual_seed(seed)
        self.has_started = False

    def run(self, call: Callable, *args: Any) -> Any:
        """call(*args); an exception says in which worker it was raised, as in PyTorch."""
        before, current.info = get_worker_info(), self.info
        generator = _C._draw_from(self.generator)
        try:
            return call(*args)
        except Exception as error:
            text = _Told(f"Caught {type(error).__name__} in DataLoader worker process {self.info.id}.\n" + traceback.format_exc())
            try:
                told = type(error)(text)
            except TypeError:
                told = RuntimeError(text)
            raise told from error
        finally:
            current.info = before
            _C._draw_from(generator)


def get_worker_info() -> Optional[WorkerInfo]:
    """That of the worker this thread is, or None."""
    return getattr(current, "info", None)


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "__array__")


def default_convert(data: Any) -> Any:
    """Arrays as tensors, in whatever holds them."""
    if isinstance(data, _C.Tensor):
        return data
    if _is_array(data):
        return data if data.dtype.kind in "SUO" else _C.as_tensor(data)
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return [default_convert(value) for value in data]
    return data


def default_collate(batch: Any) -> Any:
    """Tensors stacked, numbers as a tensor, strings as a list; the same within tuples, lists and dicts."""
    first = batch[0]
    if isinstance(first, _C.Tensor):
        return _C.stack(list(batch), 0)
    if _is_array(first):
        if first.dtype.kind in "SUO":
            raise TypeError(
                f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {first.dtype}"
            )
        return (
            _C.stack([_C.as_tensor(value) for value in batch], 0) if getattr(first, "shape", ()) else _C.as_tensor(list(batch))
        )
    if isinstance(first, float):
        return _C.tensor(list(batch), dtype=onestep.float64)
    if isinstance(first, int):
        return _C.tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        collated = {key: default_collate([sample[key] for sample in batch]) for key in first}
        try:
            return type(first)(collated)  # type: ignore[call-arg]
        except TypeError:
            return collated
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(samples) for samples in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(samples) for samples in zip(*batch)]
        return columns
    raise TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}")
