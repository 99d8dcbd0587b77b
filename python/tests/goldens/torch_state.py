"""The files torch_state.pt, torch_legacy.pt (the format before PyTorch 1.6) and torch_rng.pt (states of the generator, and the
numbers drawn next), which torch.save wrote; `python torch_state.py` writes them again (needs torch)."""

from collections import OrderedDict


def content(torch):
    """Nested containers with tensors of all dtypes, a view, a tied weight and plain values."""
    w = torch.arange(6.0).reshape(2, 3)
    state = OrderedDict([("w", w), ("tied", w), ("row", w[1]), ("turned", w.t())])
    dtypes = ["float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]
    return {
        "model": state,
        "kinds": {name: torch.tensor([0, 1, 2]).to(getattr(torch, name)) for name in dtypes},
        "parameter": torch.nn.Parameter(torch.tensor([1.5])),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "plain": [1, -(2**40), 2.5, True, None, "text \u00e9", (1, (2,), ()), {3: "three"}],
        "size": torch.Size([2, 3]),
        "dtype": torch.float32,
    }


if __name__ == "__main__":
    import os

    import torch

    HERE = os.path.dirname(os.path.abspath(__file__))
    torch.save(content(torch), os.path.join(HERE, "torch_state.pt"))
    torch.save(content(torch), os.path.join(HERE, "torch_legacy.pt"), _use_new_zipfile_serialization=False)
    states = []
    for seed, draws in ((5, 0), (6, 3), (-3, 700)):
        torch.manual_seed(seed)
        torch.randn(draws)
        states.append((torch.get_rng_state(), torch.randn(3)))
    torch.save(states, os.path.join(HERE, "torch_rng.pt"))
