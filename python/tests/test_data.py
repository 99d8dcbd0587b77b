"""onestep.utils.data: PyTorch's orders (goldens/make_nn.py), collating and workers."""

import threading

import pytest

import onestep as T
from onestep.utils.checkpoint import checkpoint
from onestep.utils.data import DataLoader, Dataset, IterableDataset, StackDataset, Subset, TensorDataset
from onestep.utils.data import default_collate, get_worker_info
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


class Draws(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return T.rand(1), get_worker_info().id, T.initial_seed()


def test_workers_draw_from_generators_of_their_own():
    T.manual_seed(0)
    loader = DataLoader(Draws(), num_workers=2, persistent_workers=True)
    draws, ids, seeds = zip(*[(x.item(), worker.item(), seed.item()) for x, worker, seed in loader])
    # PyTorch 2.13: [float(x) for x, *_ in DataLoader(Draws(), num_workers=2)] after manual_seed(0), and torch.rand(1) then
    assert draws == pytest.approx([0.7821399, 0.6938179, 0.0535990, 0.2979590], rel=1e-6)
    assert T.rand(1).item() == pytest.approx(0.0884774, rel=1e-5)
    assert ids == (0, 1, 0, 1) and seeds[1] == seeds[0] + 1
    assert next(iter(loader))[0].item() not in draws  # workers that stay draw on


def test_what_workers_raise_names_them():
    class Broken(Draws):
        def __getitem__(self, i):
            raise KeyError("no such sample")

    with pytest.raises(KeyError, match=r"^Caught KeyError in DataLoader worker process 0.\n(.|\n)*no such sample"):
        list(DataLoader(Broken(), num_workers=1))

    def wrong(worker):
        raise ZeroDivisionError("at the start")

    with pytest.raises(ZeroDivisionError, match="at the start"):
        list(DataLoader(Draws(), num_workers=2, worker_init_fn=wrong))
    waiting = threading.Event()

    class Slow(Draws):
        def __getitem__(self, i):
            waiting.wait()

    with pytest.raises(RuntimeError, match="timed out after 0.01 seconds"):
        list(DataLoader(Slow(), num_workers=1, timeout=0.01))
    waiting.set()


def test_stacked_datasets_are_asked_for_batches():
    class Tens(Draws):
        def __getitems__(self, places):
            return [10 * i for i in places]

    stacked = StackDataset(Tens(), TensorDataset(T.arange(4)))
    assert [first.tolist() for first, _ in DataLoader(stacked, 2)] == [[0, 10], [20, 30]]
    assert StackDataset(a=Tens(), b=Tens()).__getitems__([1, 2]) == [{"a": 10, "b": 10}, {"a": 20, "b": 20}]


def test_a_made_loader_keeps_its_order_and_its_iterator_has_a_length():  # as in torch 2.13
    loader = DataLoader(TensorDataset(T.arange(10)), batch_size=3)
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, None)
    loader.collate_fn = len
    batches = iter(loader)
    assert len(batches) == 4 and next(batches) == 3 and len(batches) == 4 and list(batches) == [3, 3, 1]
    assert len(iter(DataLoader(TensorDataset(T.arange(10)), batch_size=3, num_workers=1))) == 4

    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    with pytest.raises(TypeError):
        len(iter(DataLoader(Stream(), batch_size=2)))


def test_options_that_need_workers():  # as in torch 2.13
    loader = DataLoader(TensorDataset(T.arange(10)), timeout=1)
    with pytest.raises(AssertionError, match="timeout == 0"):
        iter(loader)
    with pytest.raises(ValueError, match="prefetch_factor option should be non-negative"):
        DataLoader(TensorDataset(T.arange(10)), num_workers=1, prefetch_factor=-1)
    with pytest.raises(ValueError, match="multiprocessing_context can only be used with multi-process loading"):
        DataLoader(TensorDataset(T.arange(10)), multiprocessing_context="spawn")
