"""onestep.utils.data: PyTorch's orders (goldens/make_nn.py), collating and workers."""

import pytest

import onestep as T
from onestep.utils.checkpoint import checkpoint
from onestep.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, default_collate, get_worker_info
from test_nn import GOLDEN, make_nn


def test_orders_from_one_seed():
    assert make_nn.orders(T) == GOLDEN["orders"]


def test_threads_give_the_batches_of_no_threads():
    data = TensorDataset(T.arange(20))
    runs = []
    for workers in (0, 3):
        T.manual_seed(1)
        runs.append([batch[0].tolist() for batch in DataLoader(data, 3, shuffle=True, num_workers=workers)])
    assert runs[0] == runs[1]


def test_workers_know_themselves():
    class Numbers(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            return iter(range(info.id, 6, info.num_workers))

    started = []
    loader = DataLoader(Numbers(), 2, num_workers=2, worker_init_fn=started.append)
    assert [batch.tolist() for batch in loader] == [[0, 2], [1, 3], [4], [5]] and started == [0, 1]


def test_an_error_in_a_worker_arrives():
    class Broken(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            raise ZeroDivisionError(i)

    with pytest.raises(ZeroDivisionError):
        list(DataLoader(Broken(), num_workers=2))


def test_collate():
    got = default_collate([{"a": 1, "b": (2.5, "x")}, {"a": 2, "b": (3.5, "y")}])
    assert got["a"].tolist() == [1, 2] and got["b"][0].dtype == T.float64 and got["b"][1] == ("x", "y")


def test_checkpoint_has_the_same_gradients():
    m = T.nn.Sequential(T.nn.Linear(3, 3), T.nn.Dropout(0.5), T.nn.Linear(3, 1))
    x = T.randn(4, 3, requires_grad=True)
    grads = []
    for call in (m, lambda x: checkpoint(m, x, use_reentrant=False)):
        T.manual_seed(2)
        m.zero_grad()
        x.grad = None
        call(x).sum().backward()
        grads.append([x.grad, *(p.grad for p in m.parameters())])
    assert all(T.equal(a, b) for a, b in zip(*grads))


def test_a_subset_asks_its_dataset_for_batches():
    class Tens(Dataset):
        def __getitem__(self, i):
            return i

        def __getitems__(self, places):
            return [10 * i for i in places]

        def __len__(self):
            return 5

    assert [batch.tolist() for batch in DataLoader(Subset(Tens(), [1, 3]), 2)] == [[10, 30]]
    assert [batch.tolist() for batch in DataLoader(Subset(range(5), [1, 3]), 2)] == [[1, 3]]
