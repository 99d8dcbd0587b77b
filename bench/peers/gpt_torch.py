"""A GPT of nanoGPT's shape in PyTorch: pre-norm blocks, fused QKV, GELU, learned positions, tied head."""
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (nn.LayerNorm(width, bias=bias) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=bias), nn.Linear(width, width, bias=bias)
        self.up, self.down = nn.Linear(width, 4 * width, bias=bias), nn.Linear(4 * width, width, bias=bias)

    def forward(self, x, cache=None, at=0):
        batch, tokens, width = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        if cache is not None:
            for cached, new in zip(cache, (k, v)):
                cached[:, :, at:at + tokens] = new
            k, v = (cached[:, :, :at + tokens] for cached in cache)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1)
        x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, heads, width, context, vocab, bias):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, bias) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=bias)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, ids, caches=None, at=0):
        x = self.tokens(ids) + self.positions(torch.arange(at, at + ids.shape[1]))
        for i, block in enumerate(self.blocks):
            x = block(x, caches[i] if caches else None, at)
        return F.linear(self.norm(x), self.tokens.weight)
