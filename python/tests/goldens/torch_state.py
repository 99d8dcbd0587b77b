"""The file torch_state.pt, which torch.save wrote; `python torch_state.py` writes it again (needs torch)."""

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

    torch.save(content(torch), os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_state.pt"))
