"""Datasets, samplers and loaders: PyTorch's orders from the same seed (goldens/data_orders.json), and PyTorch's errors."""

import itertools
import json
import os
import sys

import pytest

import onestep as torch
from onestep.utils import data
from onestep.utils.data.distributed import DistributedSampler

GOLDENS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens")
sys.path.insert(0, GOLDENS)
import data_orders  # noqa: E402

with open(os.path.join(GOLDENS, "data_orders.json"), encoding="utf-8") as file:
    EXPECTED = json.load(file)


def test_every_case_has_a_golden():
    assert set(data_orders.cases(torch)) == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_order_as_in_pytorch(name):
    assert json.loads(json.dumps(data_orders.run(name, torch))) == EXPECTED[name]


@pytest.mark.parametrize("name", sorted(name for name in EXPECTED if "workers" not in name))
def test_golden_is_what_pytorch_gives(name):
    pytorch = pytest.importorskip("torch")
    if pytorch.__name__ != "torch" or pytorch is torch:
        pytest.skip("PyTorch itself is needed")
    assert json.loads(json.dumps(data_orders.run(name, pytorch))) == EXPECTED[name]


TABLE = data.TensorDataset(torch.arange(10))


# ---- the rest of what a loader does


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_keep_the_order_and_know_themselves(workers):
    seen, started = [], []

    class Looks(data.Dataset):
        def __len__(self):
            return 20

        def __getitem__(self, i):
            info = data.get_worker_info()
            seen.append((info.id, info.num_workers, info.seed - info.id))
            return i

    loader = data.DataLoader(Looks(), 3, num_workers=workers, worker_init_fn=started.append)
    assert [batch.tolist() for batch in loader] == [list(range(i, min(i + 3, 20))) for i in range(0, 20, 3)]
    assert len({seed for _, _, seed in seen}) == 1 and all(0 <= i < n == workers for i, n, _ in seen)
    assert set(started) <= set(range(workers)) and started
    assert data.get_worker_info() is None


def test_an_error_in_a_worker_reaches_the_loop():
    class Breaks(data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            if i == 4:
                raise KeyError("four")
            return i

    with pytest.raises(KeyError, match="four"):
        list(data.DataLoader(Breaks(), 2, num_workers=2))


def test_a_loop_may_be_left_early_and_begun_again():
    loader = data.DataLoader(TABLE, 2, num_workers=2, persistent_workers=True, pin_memory=True)
    for (batch,) in loader:
        assert batch.tolist() == [0, 1]
        break
    assert [batch.tolist() for (batch,) in loader][-1] == [8, 9]


def test_a_loader_draws_its_seed_when_the_loop_begins():
    loader = data.DataLoader(TABLE, 2)
    torch.manual_seed(1)
    expected = torch.rand(1).item()
    torch.manual_seed(1)
    iter(loader)
    assert torch.rand(1).item() != expected


def test_getitems_takes_a_batch_at_once():
    class Whole(data.Dataset):
        def __len__(self):
            return 4

        def __getitems__(self, indices):
            return [10 * i for i in indices]

    assert [b.tolist() for b in data.DataLoader(Whole(), 3)] == [[0, 10, 20], [30]]


def test_attributes_and_lengths():
    loader = data.DataLoader(TABLE, 4, shuffle=True)
    assert (len(loader), loader.batch_size, loader.drop_last, loader.num_workers) == (3, 4, False, 0)
    assert loader.dataset is TABLE and isinstance(loader.sampler, data.RandomSampler)
    assert isinstance(loader.batch_sampler, data.BatchSampler) and loader.collate_fn is data.default_collate
    assert len(data.DataLoader(TABLE, 4, drop_last=True)) == 2
    assert len(data.DataLoader(TABLE, None)) == 10


def test_datasets():
    both = TABLE + TABLE
    assert len(both) == 20 and both[13][0].item() == 3 and both[-1][0].item() == 9
    assert both.cumulative_sizes == [10, 20]
    nested = data.Subset(data.Subset(TABLE, [9, 8, 7]), [2, 0])
    assert [nested[i][0].item() for i in range(2)] == [7, 9]
    stacked = data.StackDataset(a=TABLE, b=[str(i) for i in range(10)])
    assert stacked[4]["b"] == "4" and len(stacked) == 10


def test_collate_keeps_the_kind_of_what_it_joins():
    import collections

    Point = collections.namedtuple("Point", "x y")
    joined = data.default_collate([Point(1, 2.0), Point(3, 4.0)])
    assert isinstance(joined, Point) and joined.x.tolist() == [1, 3]
    assert joined.x.dtype == torch.int64 and joined.y.dtype == torch.float64
    assert data.default_collate(["a", "b"]) == ["a", "b"]
    ordered = data.default_collate([collections.OrderedDict(a=1), collections.OrderedDict(a=2)])
    assert isinstance(ordered, collections.OrderedDict) and ordered["a"].tolist() == [1, 2]
    assert data.default_collate([True, False]).dtype == torch.bool
    assert data.default_convert({"a": torch.ones(1), "b": "text"})["b"] == "text"


def test_collate_of_arrays():
    numpy = pytest.importorskip("numpy")
    rows = [numpy.ones(2, dtype=numpy.float32) * i for i in range(3)]
    assert data.default_collate(rows).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert data.default_collate([numpy.float64(1), numpy.float64(2)]).tolist() == [1, 2]
    with pytest.raises(TypeError):
        data.default_collate([numpy.array(["a"]), numpy.array(["b"])])


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter(range(3))


ERRORS = {
    "empty dataset shuffled": (
        lambda: data.DataLoader([], shuffle=True),
        ValueError,
        "num_samples should be a positive integer",
    ),
    "negative workers": (
        lambda: data.DataLoader(TABLE, num_workers=-1),
        ValueError,
        "num_workers option should be non-negative",
    ),
    "timeout": (lambda: data.DataLoader(TABLE, timeout=-1), ValueError, "timeout option should be non-negative"),
    "prefetch": (
        lambda: data.DataLoader(TABLE, prefetch_factor=2),
        ValueError,
        "prefetch_factor option could only be specified",
    ),
    "persistent": (lambda: data.DataLoader(TABLE, persistent_workers=True), ValueError, "persistent_workers option needs"),
    "shuffled stream": (lambda: data.DataLoader(Stream(), shuffle=True), ValueError, "expected unspecified shuffle option"),
    "stream with sampler": (lambda: data.DataLoader(Stream(), sampler=[0]), ValueError, "expected unspecified sampler option"),
    "sampler and shuffle": (lambda: data.DataLoader(TABLE, sampler=[0], shuffle=True), ValueError, "mutually exclusive"),
    "batch sampler": (lambda: data.DataLoader(TABLE, 2, batch_sampler=[[0]]), ValueError, "mutually exclusive"),
    "no batches": (lambda: data.DataLoader(TABLE, None, drop_last=True), ValueError, "disables auto-batching"),
    "batch size 0": (lambda: data.DataLoader(TABLE, 0), ValueError, "batch_size should be a positive integer value"),
    "split": (lambda: data.random_split(TABLE, [3, 3]), ValueError, "Sum of input lengths does not equal"),
    "sizes": (lambda: data.TensorDataset(torch.ones(2), torch.ones(3)), AssertionError, "Size mismatch between tensors"),
    "no datasets": (lambda: data.ConcatDataset([]), AssertionError, "datasets should not be an empty iterable"),
    "ragged": (lambda: data.default_collate([[1], [1, 2]]), RuntimeError, "should be of equal size"),
    "no batch of these": (lambda: data.default_collate([object()]), TypeError, "default_collate: batch must contain tensors"),
    "rank": (lambda: DistributedSampler(TABLE, 2, 2), ValueError, "Invalid rank 2"),
    "weights": (lambda: data.WeightedRandomSampler([[1.0]], 2), ValueError, "weights should be a 1d sequence"),
    "no samples": (lambda: data.WeightedRandomSampler([1.0], 0), ValueError, "num_samples should be a positive integer"),
    "replacement": (lambda: data.RandomSampler(TABLE, replacement=1), TypeError, "replacement should be a boolean value"),
    "length of a stream": (lambda: len(data.DataLoader(Stream())), TypeError, "has no len"),
}


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_error(name):
    call, kind, text = ERRORS[name]
    with pytest.raises(kind, match=text):
        call()


def test_an_order_longer_than_memory_is_drawn_as_it_is_read():
    sampler = data.RandomSampler(TABLE, replacement=True, num_samples=10**15)
    assert len(list(itertools.islice(sampler, 70))) == 70
