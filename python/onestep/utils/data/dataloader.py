"""DataLoader: batches of a dataset, with workers as threads: they share what the program has, but for the generator."""

from __future__ import annotations

import collections
import itertools
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Callable, Iterable, Iterator, Optional

from onestep.utils.data.collate import Worker, default_collate, default_convert
from onestep.utils.data.dataset import Dataset, IterableDataset
from onestep.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed


class _Endless(Sampler):
    """None for ever: the order of an IterableDataset."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class _Batches:
    """An iterator over a loader's batches; len() is the number of all of them."""

    def __init__(self, batches: Iterator, order: Any) -> None:
        self._batches, self._order = batches, order

    def __iter__(self) -> "_Batches":
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def __len__(self) -> int:
        return len(self._order)


class DataLoader:
    """Iterates over batches: samples in the sampler's order, joined by collate_fn."""

    _fixed = False  # whether it is made

    def __init__(
        self,
        dataset: Dataset,
        batch_size: Optional[int] = 1,
        shuffle: Optional[bool] = None,
        sampler: Optional[Iterable] = None,
        batch_sampler: Optional[Iterable] = None,
        num_workers: int = 0,
        collate_fn: Optional[Callable] = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Optional[Callable[[int], None]] = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: Optional[int] = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                "multiprocessing, otherwise set prefetch_factor to None."
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if multiprocessing_context is not None and num_workers == 0:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers=0"
            )
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable and shuffle:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}")
        if self._iterable and (sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader with IterableDataset: expected unspecified sampler option")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        self.dataset, self.num_workers, self.generator = dataset, num_workers, generator
        self.pin_memory, self.timeout, self.worker_init_fn = pin_memory, timeout, worker_init_fn
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self._seed: Optional[int] = None
        self._stay: list[Worker] = []
        self.batch_size, self.drop_last = batch_size, drop_last
        if sampler is None:
            if self._iterable:
                sampler = _Endless()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._fixed = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._fixed and name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __len__(self) -> int:
        if self._iterable:
            n = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator:
        if self.timeout and not self.num_workers:
            raise AssertionError(f"DataLoader without workers requires timeout == 0, but got {self.timeout}")
        if self._seed is None or not self.persistent_workers:  # workers that stay keep their seed, as in PyTorch
            self._seed = draw_seed(self.generator)
        order: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
        if self._iterable:
            return _Batches(self._stream(self._seed), order)
        indices = iter(order)
        return _Batches(self._threaded(indices, self._seed) if self.num_workers else map(self._fetch, indices), order)

    def _fetch(self, index: Any) -> Any:
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[index])
        if getattr(self.dataset, "__getitems__", None):
            return self.collate_fn(self.dataset.__getitems__(index))  # type: ignore[attr-defined]
        return self.collate_fn([self.dataset[i] for i in index])

    def _workers(self, seed: int) -> list[Worker]:
        if not self._stay or not self.persistent_workers:
            self._stay = [Worker(i, self.num_workers, seed + i, self.dataset) for i in range(self.num_workers)]
        return self._stay

    def _started(self, worker: Worker) -> None:
        if self.worker_init_fn is not None and not worker.has_started:
            worker.has_started = True
            worker.run(self.worker_init_fn, worker.info.id)

    def _threaded(self, order: Iterator, seed: int) -> Iterator:
        """Batches in order, in turn from each worker, up to prefetch_factor for each of them ahead."""
        workers = self._workers(seed)
        threads = [ThreadPoolExecutor(1) for _ in workers]
        starts = [thread.submit(self._started, worker) for thread, worker in zip(threads, workers)]
        ahead: collections.deque = collections.deque()

        def awaited(work: Future) -> Any:
            try:
                return work.result(self.timeout or None)
            except FutureTimeout as error:
                if work.done():  # it is the worker's own
                    raise
                raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds") from error

        def first() -> Any:
            i, batch = ahead.popleft()
            awaited(starts[i])
            return awaited(batch)

        try:
            for number, index in enumerate(order):
                i = number % self.num_workers
                ahead.append((i, threads[i].submit(workers[i].run, self._fetch, index)))
                if len(ahead) >= self.num_workers * (self.prefetch_factor or 2):
                    yield first()
            while ahead:
                yield first()
        finally:
            for thread in threads:
                thread.shutdown(wait=False, cancel_futures=True)

    def _stream(self, seed: int) -> Iterator:
        """Batches of an IterableDataset; with workers, theirs in turn, each one's own copy of the stream."""
        if not self.num_workers:
            yield from self._batches(iter(self.dataset))  # type: ignore[call-overload]
            return
        streams = []
        for worker in self._workers(seed):
            self._started(worker)
            streams.append((worker, worker.run(lambda: self._batches(iter(self.dataset)))))  # type: ignore[call-overload]
        done = object()
        while streams:
            for stream in list(streams):
                batch = stream[0].run(next, stream[1], done)
                if batch is done:
                    streams.remove(stream)
                else:
                    yield batch

    def _batches(self, samples: Iterator) -> Iterator:
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        while True:
            batch = list(itertools.islice(samples, self.batch_size))
            if not batch or (self.drop_last and len(batch) < self.batch_size):
                return
            yield self.collate_fn(batch)
