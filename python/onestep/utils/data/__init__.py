"""Datasets, samplers and the data loader."""

from onestep.utils.data import dataloader, dataset, distributed, sampler
from onestep.utils.data.collate import default_collate, default_convert, get_worker_info
from onestep.utils.data.dataloader import DataLoader
from onestep.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from onestep.utils.data.distributed import DistributedSampler
from onestep.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "dataloader",
    "dataset",
    "default_collate",
    "distributed",
    "default_convert",
    "get_worker_info",
    "random_split",
    "sampler",
]
