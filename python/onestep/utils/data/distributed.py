"""The sampler of one of several processes."""

from __future__ import annotations

import math
from typing import Any, Iterator, Optional

import onestep
from onestep import _C
from onestep.utils.data.sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every num_replicas-th index from `rank` on, shuffled by seed + epoch."""

    def __init__(
        self,
        dataset: Any,
        num_replicas: Optional[int] = None,
        rank: Optional[int] = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.num_replicas, self.rank = (1 if num_replicas is None else num_replicas), (0 if rank is None else rank)
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {self.num_replicas - 1}]")
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = dataset, shuffle, seed, drop_last, 0
        n = len(dataset)
        self.num_samples = n // self.num_replicas if drop_last else math.ceil(n / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        indices = list(range(n))
        if self.shuffle:
            generator = onestep.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = _C.randperm(n, generator=generator).tolist()
        while len(indices) < self.total_size:
            indices += indices[: self.total_size - len(indices)]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """The epoch whose order comes next."""
        self.epoch = epoch
