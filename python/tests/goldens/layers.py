"""Programs of layers and helpers; PyTorch's results are in layers.json, which `python layers.py` writes again (needs torch)."""

import programs_nn  # noqa: F401 - each adds its programs to CASES
import programs_ops  # noqa: F401
import programs_optim  # noqa: F401
import programs_prune  # noqa: F401
import programs_rnn  # noqa: F401
import programs_weights  # noqa: F401
from programs import CASES, result

if __name__ == "__main__":
    import json
    import os
    import warnings

    import torch

    warnings.simplefilter("ignore")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "layers.json")
    rows = [f"{json.dumps(name)}:{json.dumps(result(torch, name), separators=(',', ':'))}" for name in CASES]
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(rows) + "\n}\n")
