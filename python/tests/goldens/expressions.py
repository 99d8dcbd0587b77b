"""Expressions whose results under PyTorch are in expressions.json; `python expressions.py` writes them again (needs torch)."""

EXPRESSIONS = """
x
x.shape
x[0]
x[-1, 1:]
x[..., None].shape
x[:, ::2]
x[[0, 1], [2, 0]]
x[x > 2]
x[torch.tensor([1, 0])]
x[None, 0, ..., 1]
x[True].shape
x[1][2].item()
len(x)
x.T
x.mT
x + 1
1 - x
2 / x
x // 2
x % 2
-7 // torch.tensor(2)
x ** 2
2 ** x
-x
abs(-x)
x @ x.T
x > 2
(x > 2) & (x < 5)
~(x > 2)
x == x
i
i + 1
i + 1.5
i / 2
i // 2
i << 1
i.float()
i.double()
i.bool()
i.to(torch.uint8)
x.sum()
x.sum(0)
x.sum((0, 1))
x.sum(dim=1, keepdim=True)
x.sum(axis=1)
x.mean(-1)
i.sum()
x.max()
x.max(dim=1)
x.min(0)
x.argmax()
x.argmax(1)
x.var()
x.std(0, unbiased=False)
torch.var_mean(x)
x.norm()
x.norm(p=1, dim=1)
x.cumsum(1)
x.prod()
x.any()
(x > 0).all(1)
x.softmax(-1)
torch.softmax(x, dim=0)
torch.log_softmax(x, 1)
torch.logsumexp(x, 1)
(x / 2).exp()
torch.sigmoid(x)
x.tanh()
x.sqrt().round(decimals=2)
torch.where(x > 2, x, 0.0)
torch.where(x > 2)
x.clamp(2, 4)
x.clamp(min=2)
torch.maximum(x, 3 * torch.ones(3))
x.view(3, 2)
x.view(-1)
x.view((6,))
x.reshape(3, -1)
x.permute(1, 0)
x.transpose(0, 1)
x.unsqueeze(0).shape
x.unsqueeze(-1).squeeze(-1).shape
x.flatten()
x.expand(2, 2, 3).shape
x.repeat(2, 1)
x.flip(0)
x.roll(1, 1)
torch.cat([x, x], 1)
torch.cat((x, x))
torch.stack([x, x]).shape
x.split(1)
x.split([1, 2], 1)
x.chunk(2, 1)
x.unbind()
torch.tril(torch.ones(3, 3))
torch.triu(torch.ones(3, 3), diagonal=1).bool()
torch.eye(2)
torch.arange(5)
torch.arange(1, 2, 0.25)
torch.arange(3, dtype=torch.float32)
torch.linspace(0, 1, 5)
torch.zeros(2, 3)
torch.zeros((2,), dtype=torch.int64)
torch.ones_like(i)
torch.full((2, 2), 7)
torch.full((2,), 1.5)
torch.empty(0)
torch.empty(2, 0).shape
torch.zeros(0, 3)
torch.tensor(3)
torch.tensor(2.5)
torch.tensor([True, False])
torch.tensor([1, 2.5])
torch.tensor([[1, 2], [3, 4]], dtype=torch.float64)
torch.tensor([])
torch.tensor([x[0, 0], 2.0])
torch.tensor([1e-8, 1.0])
torch.tensor([1e10, 1.0])
torch.tensor([float('inf'), float('-inf'), float('nan')])
torch.tensor([1000000.0, 2.0])
torch.tensor(1.5, dtype=torch.float16)
torch.tensor([1, 2], dtype=torch.int32)
torch.arange(2000)
torch.arange(3000.0).view(30, 100)
torch.zeros(30, 2)
torch.ones(2, 2, 2, 2)
x.tolist()
i.tolist()
torch.tensor(True).item()
x.dtype
i.dtype
torch.float32
torch.Size([2, 3])
x.size()
x.size(1)
x.stride()
x.numel()
x.dim()
x.type()
x.device
x.is_contiguous()
x.T.is_contiguous()
float(x.sum())
int(i[0])
bool(i[0] == 0)
f'{x[0, 0]:.2f}'
f'{x[0, 0]} {x[0]} {w.sum()}'
str(x[0, 0])
w
w * 2
(w * 2).sum()
(w * 2).grad_fn is not None
w.detach()
(w @ w.T).requires_grad
torch.topk(x, 2)
torch.sort(x, descending=True)
x.argsort(1, descending=True)
x.gather(1, torch.tensor([[0], [2]]))
torch.zeros(2, 3).scatter(1, torch.tensor([[0], [2]]), 1.0)
x.index_select(1, torch.tensor([0, 2]))
x.masked_fill(x > 2, float('-inf'))
x.nonzero().shape
torch.unique(torch.tensor([3, 1, 3]))
torch.bincount(torch.tensor([0, 1, 1]))
torch.einsum('ij,kj->ik', x, x)
torch.outer(torch.arange(3), torch.arange(2))
torch.diag(torch.tensor([1, 2]))
torch.meshgrid(torch.arange(2), torch.arange(3), indexing='ij')
torch.allclose(x, x + 1e-9)
torch.equal(x, x)
torch.isnan(x)
torch.dot(x[0], x[1])
torch.manual_seed(0) and torch.rand(3)
torch.manual_seed(0) and torch.randn(2, 3)
torch.manual_seed(0) and torch.randint(0, 10, (5,))
torch.manual_seed(0) and torch.randint(10, (2, 2))
torch.manual_seed(0) and torch.randperm(6)
torch.manual_seed(0) and torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 5, replacement=True)
torch.manual_seed(0) and torch.zeros(4).normal_(1, 2)
torch.manual_seed(0) and torch.zeros(4).uniform_(-1, 1)
torch.manual_seed(0) and torch.empty(3, dtype=torch.int64).random_()
torch.manual_seed(0) and torch.zeros(4).random_(10)
torch.manual_seed(0) and torch.zeros(4).random_(2, 9)
torch.manual_seed(0) and torch.bernoulli(torch.full((6,), 0.5))
torch.manual_seed(0) and torch.normal(0.0, 1.0, (3,))
torch.rand(2, generator=torch.Generator().manual_seed(7))
torch.nn.functional.relu
x.add(x, alpha=2)
torch.add(x, 1, alpha=3)
torch.div(x, 2, rounding_mode='floor')
x.new_zeros(2)
x.new_tensor([1, 2])
torch.addmm(torch.ones(2, 2), x, x.T)
torch.bmm(torch.ones(1, 2, 3), torch.ones(1, 3, 2))
torch.finfo(torch.float32).eps
torch.iinfo(torch.int64).max
torch.promote_types(torch.int64, torch.float16)
x.double().sum()
2 in i
[row.sum().item() for row in x]
x[5]
x[0, 0, 0]
x.view(4)
x @ x
x + torch.ones(4)
torch.tensor('a')
torch.cat([])
i.requires_grad_()
x.sum(5)
torch.zeros(2).item()
len(torch.tensor(1))
bool(x)
torch.softmax(x)
x.reshape(2, 2)
torch.tensor([[1], [2, 3]])
(w * 2).backward()
w.numpy()
torch.matmul(x, torch.ones(4))
torch.stack([x, x[0]])
x.gather(1, torch.tensor([[7]]))
x.nothing
torch.zeros(-1)
torch.randint(3, 2, (1,))
""".strip().split("\n")
EXPRESSIONS = [e for e in EXPRESSIONS if e != "torch.nn.functional.relu"]


def evaluate(expression: str, torch) -> str:
    """What the expression gives, as text; an exception by its class in Python."""
    import builtins

    names = {
        "torch": torch,
        "x": torch.arange(1.0, 7.0).reshape(2, 3),
        "i": torch.arange(4).reshape(2, 2),
        "w": torch.tensor([[0.5, -1.0]], requires_grad=True),
    }
    try:
        return repr(eval(expression, names))
    except Exception as error:  # noqa: BLE001 - any, as PyTorch raises it
        kinds = [kind for kind in type(error).__mro__ if kind.__module__ == "builtins" and hasattr(builtins, kind.__name__)]
        return "raises " + " ".join(sorted(kind.__name__ for kind in kinds[:-3]))


if __name__ == "__main__":
    import json
    import os

    import torch

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expressions.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({e: evaluate(e, torch) for e in EXPRESSIONS}, file, indent=0)
        file.write("\n")
