"""Writes functional.json: torch.autograd.functional (PyTorch 2.13.0+cpu) on small functions, in float64.

Run from this folder: python3 functional.py > functional.json
"""
import json

import torch
import torch.nn.functional as F
from torch.autograd import functional

X = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64)
W = torch.tensor([[1.0, -0.5, 0.25], [0.75, 2.0, -1.25]], dtype=torch.float64)
V = torch.tensor([[1.0, 2.0, -1.0], [0.5, -2.0, 3.0]], dtype=torch.float64)
U = torch.tensor([[-1.0, 0.5, 1.0], [2.0, 1.0, -0.5]], dtype=torch.float64)

UNARY = {  # of a [2, 3]
    "tanh": lambda x: torch.tanh(x) * x,
    "softmax": lambda x: F.softmax(x, 1),
    "row": lambda x: (x * x)[0],
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "norm": lambda x: F.layer_norm(x, (3,)),
}
SCALAR = {  # of two [2, 3], with a single result
    "products": lambda x, w: (x * w).sum() ** 2 + (x**3).sum(),
    "loss": lambda x, w: F.cross_entropy(x @ w.t(), torch.tensor([1, 0])),
    "linear in w": lambda x, w: (torch.exp(x) * w).sum(),
    "attention": lambda x, w: F.scaled_dot_product_attention(x[None], w[None], w[None]).square().sum(),
    "without w": lambda x, w: torch.sin(x).sum(),
}


def lists(x):
    return [lists(part) for part in x] if isinstance(x, (tuple, list)) else x.tolist()


unary = {}
for name, f in UNARY.items():
    y = f(X)
    v = (torch.arange(y.numel(), dtype=torch.float64) - 1.5).reshape(y.shape)
    unary[name] = {"output": lists(y), "jacobian": lists(functional.jacobian(f, X)), "v": lists(v),
                   "vjp": lists(functional.vjp(f, X, v)[1]), "jvp": lists(functional.jvp(f, X, V)[1])}
scalar = {}
for name, f in SCALAR.items():
    scalar[name] = {"output": lists(f(X, W)), "jacobian": lists(functional.jacobian(f, (X, W))),
                    "hessian": lists(functional.hessian(f, (X, W))), "hvp": lists(functional.hvp(f, (X, W), (V, U))[1]),
                    "jvp": lists(functional.jvp(f, (X, W), (V, U))[1])}
print(json.dumps({"made_by": "functional.py", "torch": torch.__version__, "x": lists(X), "w": lists(W), "v": lists(V),
                  "u": lists(U), "unary": unary, "scalar": scalar}).replace('}, "', '},\n "'))
