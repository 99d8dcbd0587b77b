"""Orders in which samples are taken, with PyTorch's draws."""

from __future__ import annotations

import itertools
from typing import Any, Generic, Iterable, Iterator, List, Optional, Sequence, TypeVar

import onestep
from onestep import _C

T = TypeVar("T", covariant=True)


def draw_seed(generator: Any = None) -> int:
    """What torch.empty((), dtype=int64).random_() draws: the low 63 bits of one 64-bit output of the generator."""
    return (int(_C.randint(-(2**63), 2**63 - 1, (), generator=generator).item()) + 2**63) & (2**63 - 1)


class Sampler(Generic[T]):
    """Gives indices, or lists of them."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2 ..."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A random permutation, or with `replacement` num_samples draws."""

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: Optional[int] = None, generator: Any = None
    ) -> None:
        self.data_source, self.replacement, self._num_samples, self.generator = data_source, replacement, num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """How many indices an epoch has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, wanted = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = onestep.Generator()
            generator.manual_seed(draw_seed())
        if self.replacement:
            for _ in range(wanted // 32):
                yield from _C.randint(n, (32,), generator=generator).tolist()
            yield from _C.randint(n, (wanted % 32,), generator=generator).tolist()
            return
        for _ in range(wanted // n):
            yield from _C.randperm(n, generator=generator).tolist()
        # PyTorch draws this last permutation even where none of it is wanted
        yield from _C.randperm(n, generator=generator).tolist()[: wanted % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in _C.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """num_samples draws with the given weights."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = _C.as_tensor(weights, dtype=onestep.float64)
        if self.weights.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        yield from _C.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[List[int]]):
    """Lists of batch_size indices of another sampler."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[List[int]]:
        indices = iter(self.sampler)
        while True:
            batch = list(itertools.islice(indices, self.batch_size))
            if not batch or (self.drop_last and len(batch) < self.batch_size):
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
