"""Writes gpt_windows.json: the parts of tinyshakespeare that the two runs of gpt.json read, so that a test can follow them without
the whole text. Repeats both runs on the way, with 1, 2 and 4 threads, and stops if a loss differs from the listed one. A gradient
norm may: where one differs by more than 5e-6, norm_spread lists run, step and the largest relative difference.

Run with torch 2.13.0 (CPU): python3 gpt_windows.py TINYSHAKESPEARE > gpt_windows.json
"""

import json
import math
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, d, heads, bias, dropout):
        super().__init__()
        self.ln_1 = nn.LayerNorm(d, bias=bias)
        self.c_attn = nn.Linear(d, 3 * d, bias=bias)
        self.attn_proj = nn.Linear(d, d, bias=bias)
        self.ln_2 = nn.LayerNorm(d, bias=bias)
        self.c_fc = nn.Linear(d, 4 * d, bias=bias)
        self.mlp_proj = nn.Linear(4 * d, d, bias=bias)
        self.heads, self.drop = heads, nn.Dropout(dropout)

    def forward(self, x):
        T, d = x.shape[1:]
        q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for z in self.c_attn(self.ln_1(x)).split(d, 2))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(d / self.heads)
        future = torch.ones(T, T).triu(1).bool()
        y = self.drop(scores.masked_fill(future, -math.inf).softmax(-1)) @ v
        x = x + self.drop(self.attn_proj(y.transpose(1, 2).flatten(2)))
        return x + self.drop(self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh")))


class Gpt(nn.Module):
    def __init__(self, c):
        super().__init__()
        d = c["d"]
        self.wte, self.wpe = nn.Embedding(c["vocab"], d), nn.Embedding(c["T"], d)
        self.h = nn.ModuleList(Block(d, c["h"], c["bias"], c["dropout"]) for _ in range(c["L"]))
        self.ln_f = nn.LayerNorm(d, bias=c["bias"])
        self.lm_head = nn.Linear(d, c["vocab"], bias=False)
        self.drop = nn.Dropout(c["dropout"])
        self.wte.weight = self.lm_head.weight
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, 0.0, 0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        for block in self.h:
            for layer in (block.attn_proj, block.mlp_proj):
                nn.init.normal_(layer.weight, 0.0, 0.02 / math.sqrt(2 * c["L"]))

    def forward(self, tokens):
        x = self.drop(self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1])))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def learning_rate(c, step):
    if "schedule" not in c:
        return c["lr"]
    s = c["schedule"]
    if step < s["warmup"]:
        return c["lr"] * (step + 1) / (s["warmup"] + 1)
    progress = (step - s["warmup"]) / (s["decay"] - s["warmup"])
    return s["min_lr"] + 0.5 * (1 + math.cos(math.pi * progress)) * (c["lr"] - s["min_lr"])


def repeat(run, train):
    """Repeats a run; returns where its windows begin and how far each gradient norm is from the listed one."""
    c, starts, differences = run["config"], [], []
    torch.manual_seed(c["seed"])
    model = Gpt(c)
    groups = [
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": c["wd"]},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=c["lr"], betas=(0.9, c["beta2"]), eps=1e-8)
    for step, listed in enumerate(run["losses"]):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(c, step)
        optimizer.zero_grad()
        total = 0.0
        for _ in range(c["accum"]):
            first = torch.randint(len(train) - c["T"], (c["B"],))
            starts += first.tolist()
            rows = torch.stack([train[i : i + c["T"] + 1] for i in first])
            loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()) / c["accum"]
            loss.backward()
            total += loss.item()
        if abs(total - listed) > 1e-5 * listed:
            sys.exit(f"step {step}: loss {total} is not the listed {listed}")
        norm = nn.utils.clip_grad_norm_(model.parameters(), c["clip"]).item()
        differences.append(abs(norm / run["grad_norms"][step] - 1))
        optimizer.step()
    return starts, differences


def main():
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    ids = torch.tensor([alphabet.index(c) for c in text])
    pieces, spread = {}, {}
    for i, run in enumerate(json.loads((Path(__file__).parent / "gpt.json").read_text())["runs"]):
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            starts, differences = repeat(run, ids[: int(0.9 * len(ids))])
            for step, difference in enumerate(differences):
                if difference > 5e-6:
                    spread[i, step] = max(difference, spread.get((i, step), 0))
        for start in starts:
            piece = text[start : start + run["config"]["T"] + 1]
            pieces[start] = max(piece, pieces.get(start, ""), key=len)
    result = {
        "torch": torch.__version__,
        "characters": len(text),
        "alphabet": "".join(alphabet),
        "norm_spread": [[*place, float("%.2g" % difference)] for place, difference in sorted(spread.items())],
        "pieces": [[start, pieces[start]] for start in sorted(pieces)],
    }
    json.dump(result, sys.stdout, separators=(",", ":"))
    print()


main()
