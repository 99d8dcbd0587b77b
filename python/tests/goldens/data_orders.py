"""Orders of samplers and loaders; PyTorch's are in data_orders.json, which `python data_orders.py` writes (needs torch)."""

from importlib import import_module


def _lists(value):
    """Batches as plain lists and numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _lists(v) for key, v in value.items()}
    return [_lists(v) for v in value] if isinstance(value, (list, tuple)) else value


def _tools(torch):
    data = import_module(torch.__name__ + ".utils.data")

    class Squares(data.Dataset):
        def __len__(self):
            return 11

        def __getitem__(self, i):
            return {"x": torch.tensor([float(i), i * i]), "n": i, "half": i / 2, "name": str(i), "pair": (i, [i + 1.0])}

    class Stream(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            return iter(range(7) if info is None else range(info.id, 7, info.num_workers))

    return data, Squares(), Stream()


def _generator(torch, seed):
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


def cases(torch):
    """{name: function that gives lists}, each run after manual_seed(7)."""
    data, squares, stream = _tools(torch)
    distributed = import_module(torch.__name__ + ".utils.data.distributed")
    table = data.TensorDataset(torch.arange(11), torch.arange(22.0).reshape(11, 2))

    def two_epochs(loader):
        epochs = [_lists(list(loader)), _lists(list(loader))]
        return epochs + [_lists(torch.rand(2))]  # where the default generator is afterwards

    def sampler_twice(sampler):
        return [list(sampler), list(sampler), len(sampler), _lists(torch.randint(0, 1000, (2,)))]

    def ranks(**kwargs):
        rows = []
        for rank in range(3):
            sampler = distributed.DistributedSampler(table, 3, rank, **kwargs)
            rows.append([list(sampler), len(sampler)])
            sampler.set_epoch(2)
            rows.append(list(sampler))
        return rows

    loader = data.DataLoader
    return {
        "random": lambda: sampler_twice(data.RandomSampler(range(11))),
        "random by a generator": lambda: sampler_twice(data.RandomSampler(range(11), generator=_generator(torch, 3))),
        "random with replacement": lambda: sampler_twice(data.RandomSampler(range(11), replacement=True, num_samples=70)),
        "random, more than there are": lambda: sampler_twice(data.RandomSampler(range(4), num_samples=10)),
        "subset": lambda: sampler_twice(data.SubsetRandomSampler([5, 3, 9, 1])),
        "weighted": lambda: sampler_twice(data.WeightedRandomSampler([0.1, 0.6, 0.2, 3.0], 9)),
        "weighted without replacement": lambda: sampler_twice(
            data.WeightedRandomSampler([0.1, 0.6, 0.2, 3.0], 3, replacement=False)
        ),
        "batches": lambda: sampler_twice(data.BatchSampler(data.SequentialSampler(range(7)), 3, False)),
        "batches, last dropped": lambda: sampler_twice(data.BatchSampler(data.SequentialSampler(range(7)), 3, True)),
        "split": lambda: [p.indices for p in data.random_split(range(11), [5, 6])] + [_lists(torch.rand(2))],
        "split by shares": lambda: [p.indices for p in data.random_split(range(11), [0.5, 0.3, 0.2], _generator(torch, 42))],
        "distributed": lambda: ranks(),
        "distributed, in order, last dropped": lambda: ranks(shuffle=False, drop_last=True),
        "loader": lambda: two_epochs(loader(table, batch_size=4)),
        "loader shuffled": lambda: two_epochs(loader(table, batch_size=4, shuffle=True)),
        "loader shuffled, last dropped": lambda: two_epochs(loader(table, 4, True, drop_last=True)),
        "loader by a generator": lambda: two_epochs(loader(table, 4, shuffle=True, generator=_generator(torch, 3))),
        "loader of one sample": lambda: two_epochs(loader(table, batch_size=None)),
        "loader with a sampler": lambda: two_epochs(loader(table, 5, sampler=data.SubsetRandomSampler([8, 2, 5]))),
        "loader with a batch sampler": lambda: two_epochs(loader(table, batch_sampler=[[1, 2], [3], [0, 4]])),
        "loader with collate_fn": lambda: two_epochs(loader(table, 4, collate_fn=lambda rows: sum(int(i) for i, _ in rows))),
        "loader of dicts": lambda: two_epochs(loader(squares, 4, shuffle=True)),
        "loader with workers": lambda: two_epochs(loader(squares, 2, shuffle=True, num_workers=2)),
        "loader with workers that stay": lambda: two_epochs(
            loader(squares, 4, shuffle=True, num_workers=2, persistent_workers=True)
        ),
        "loader of lists": lambda: two_epochs(loader([3, 1, 4, 1, 5], 2, shuffle=True)),
        "loader of a subset of two": lambda: two_epochs(
            loader(data.Subset(data.ConcatDataset([table, table]), [12, 0, 21]), 2)
        ),
        "stream": lambda: two_epochs(loader(stream, 3)),
        "stream, last dropped": lambda: two_epochs(loader(stream, 3, drop_last=True)),
        "stream of single samples": lambda: two_epochs(loader(stream, None)),
        "stream with workers": lambda: two_epochs(loader(stream, 2, num_workers=2)),
    }


def run(name, torch):
    """What the case gives."""
    torch.manual_seed(7)
    return _lists(cases(torch)[name]())


if __name__ == "__main__":
    import json
    import os

    import torch

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data_orders.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({name: run(name, torch) for name in cases(torch)}, file, separators=(",", ":"))
        file.write("\n")
