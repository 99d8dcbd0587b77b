"""Writes layers.json: how PyTorch initialises, runs, names and prints recurrent, attention and transformer modules.

Run with torch 2.13.0 (CPU): python3 layers.py > layers.json
"""

import json
import sys
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
INF = float("inf")


def flat(t):
    return [float("%.9g" % v) for v in t.detach().flatten().tolist()]


def fnv1a(t):
    """64-bit FNV-1a of the float32 bits, little-endian."""
    value = 0xCBF29CE484222325
    for byte in t.detach().contiguous().numpy().tobytes():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return "%016x" % value


def tensors(result):
    """The tensors of nested tuples, without None."""
    if result is None:
        return []
    return [result] if isinstance(result, torch.Tensor) else [t for part in result for t in tensors(part)]


def upstream(n):
    """The gradient of an output with n elements."""
    return ((torch.arange(n) * 37 + 11) % 127 - 63) / 64


def run(shapes, build, call, grads=True):
    """seed 7: inputs = randn, one after another, then the module, then a training pass, then an evaluation pass."""
    torch.manual_seed(7)
    inputs = [torch.randn(shape).requires_grad_() for shape in shapes]
    module = build()
    parameters = dict(module.named_parameters())
    result = {"repr": repr(module), "keys": list(module.state_dict()), "shapes": shapes}
    result["hashes"] = {k: fnv1a(p) for k, p in parameters.items()}
    outputs = tensors(call(module, *inputs))
    sum((t.flatten() * upstream(t.numel())).sum() for t in outputs).backward()
    result["y"] = [flat(t) for t in outputs]
    result["input_grads"] = [flat(t.grad) for t in inputs]
    if grads:
        result["grads"] = {k: flat(p.grad) for k, p in parameters.items()}
    module.eval()
    result["y_eval"] = [flat(t) for t in tensors(call(module, *inputs))]
    return result


def plain(module, *inputs):
    return module(*inputs)


def with_state(module, x, h, c):
    return module(x, (h, c))


def attend(query_is_all=False, **kwargs):
    if query_is_all:
        return lambda module, x: module(x, x, x, **kwargs)
    return lambda module, q, k, v: module(q, k, v, **kwargs)


HIDDEN = torch.tensor([[False, True, False, False], [False, False, True, True], [True, True, True, False]])  # [T, S]
PADDED = torch.tensor([[False, False, True, False], [True, False, False, False]])  # [B, S]
BIAS = torch.tensor([[0.5, -1.0, 0.25, -INF], [0.0, 1.0, -0.5, 2.0], [-INF, 0.75, 0.0, 0.125]])
PADDING_BIAS = torch.tensor([[0.0, -INF, 0.5, 0.0], [0.25, 0.0, 0.0, -INF]])
CAUSAL = nn.Transformer.generate_square_subsequent_mask(4)
MEMORY_PADDED = torch.tensor([[False, False, True, True, False], [True, False, False, False, False]])


def attention(*args, **kwargs):
    return lambda: nn.MultiheadAttention(*args, **kwargs)


SMALL = dict(d_model=6, nhead=2, dim_feedforward=5, dropout=0.2)
QKV = [[3, 2, 6], [4, 2, 6], [4, 2, 6]]
CASES = {
    "RNNCell": ([[3, 4]], lambda: nn.RNNCell(4, 5), plain),
    "RNNCell relu": ([[3, 4], [3, 5]], lambda: nn.RNNCell(4, 5, bias=False, nonlinearity="relu"), plain),
    "GRUCell": ([[3, 4], [3, 5]], lambda: nn.GRUCell(4, 5), plain),
    "GRUCell single": ([[4]], lambda: nn.GRUCell(4, 5, bias=False), plain),
    "LSTMCell": ([[3, 4], [3, 5], [3, 5]], lambda: nn.LSTMCell(4, 5), with_state),
    "LSTMCell single": ([[4]], lambda: nn.LSTMCell(4, 5), plain),
    "RNN": ([[4, 2, 3]], lambda: nn.RNN(3, 5), plain),
    "RNN relu": (
        [[2, 4, 3], [4, 2, 5]],
        lambda: nn.RNN(3, 5, num_layers=2, nonlinearity="relu", batch_first=True, bidirectional=True, dropout=0.3),
        plain,
    ),
    "GRU": ([[4, 2, 3]], lambda: nn.GRU(3, 5), plain),
    "GRU stacked": (
        [[4, 2, 3], [4, 2, 5]],
        lambda: nn.GRU(3, 5, num_layers=2, bias=False, bidirectional=True, dropout=0.3),
        plain,
    ),
    "LSTM": ([[4, 2, 3]], lambda: nn.LSTM(3, 5), plain),
    "LSTM stacked": (
        [[2, 4, 3], [4, 2, 5], [4, 2, 5]],
        lambda: nn.LSTM(3, 5, num_layers=2, batch_first=True, bidirectional=True, dropout=0.3),
        with_state,
    ),
    "LSTM projected": (
        [[4, 3], [4, 2], [4, 5]],
        lambda: nn.LSTM(3, 5, num_layers=2, proj_size=2, bidirectional=True),
        with_state,
    ),
    "Bilinear": ([[3, 4], [3, 2]], lambda: nn.Bilinear(4, 2, 3), plain),
    "MultiheadAttention": (QKV, attention(6, 2), attend()),
    "MultiheadAttention self": ([[4, 2, 6]], attention(6, 3, dropout=0.3), attend(True, need_weights=False)),
    "MultiheadAttention causal": (
        [[2, 4, 6]],
        attention(6, 3, batch_first=True),
        attend(True, need_weights=False, attn_mask=CAUSAL, is_causal=True),
    ),
    "MultiheadAttention sizes": (
        [[3, 2, 6], [4, 2, 5], [4, 2, 3]],
        attention(6, 2, bias=False, kdim=5, vdim=3, dropout=0.3),
        attend(average_attn_weights=False),
    ),
    "MultiheadAttention hidden keys": (
        QKV,
        attention(6, 2, add_bias_kv=True, add_zero_attn=True),
        attend(attn_mask=HIDDEN, key_padding_mask=PADDED),
    ),
    "MultiheadAttention added masks": (
        QKV,
        attention(6, 2, add_bias_kv=True),
        attend(attn_mask=BIAS, key_padding_mask=PADDING_BIAS, need_weights=False),
    ),
    "MultiheadAttention mixed masks": (
        [[2, 3, 6], [2, 4, 6], [2, 4, 6]],
        attention(6, 2, batch_first=True),
        attend(attn_mask=BIAS.expand(4, 3, 4), key_padding_mask=PADDED),
    ),
    "MultiheadAttention single": (
        [[3, 6], [4, 6], [4, 6]],
        attention(6, 2),
        attend(attn_mask=HIDDEN, key_padding_mask=PADDED[0], need_weights=False),
    ),
    "TransformerEncoderLayer": ([[4, 2, 6]], lambda: nn.TransformerEncoderLayer(**SMALL), plain),
    "TransformerEncoderLayer norm_first": (
        [[2, 4, 6]],
        lambda: nn.TransformerEncoderLayer(**SMALL, activation="gelu", norm_first=True, batch_first=True, bias=False),
        lambda module, x: module(x, src_mask=CAUSAL, is_causal=True, src_key_padding_mask=PADDED.flip(1)),
    ),
    "TransformerDecoderLayer": (
        [[4, 2, 6], [5, 2, 6]],
        lambda: nn.TransformerDecoderLayer(**SMALL),
        lambda module, x, memory: module(x, memory, tgt_mask=CAUSAL, memory_key_padding_mask=MEMORY_PADDED),
    ),
    "TransformerDecoderLayer norm_first": (
        [[2, 4, 6], [2, 5, 6]],
        lambda: nn.TransformerDecoderLayer(**SMALL, activation="gelu", norm_first=True, batch_first=True),
        plain,
    ),
}
# Whose parameters are too many to list their gradients.
STACKS = {
    "TransformerEncoder": (
        [[4, 2, 6]],
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(**SMALL), 2, nn.LayerNorm(6)),
        lambda module, x: module(x, mask=CAUSAL),
    ),
    "TransformerDecoder": (
        [[4, 2, 6], [5, 2, 6]],
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(**SMALL), 2),
        plain,
    ),
    "Transformer": (
        [[5, 2, 6], [4, 2, 6]],
        lambda: nn.Transformer(6, 2, 2, 1, 5, 0.2),
        lambda module, src, tgt: module(src, tgt, tgt_mask=CAUSAL, src_key_padding_mask=MEMORY_PADDED),
    ),
}
PRINTED = {
    "Identity": nn.Identity(),
    "RNNCell": nn.RNNCell(2, 3, bias=False, nonlinearity="relu"),
    "GRU": nn.GRU(2, 3, num_layers=2, bias=False, batch_first=True, dropout=0.5, bidirectional=True),
    "LSTM": nn.LSTM(2, 3, proj_size=1),
    "Bilinear": nn.Bilinear(2, 3, 4, bias=False),
    "ModuleDict": nn.ModuleDict({"first": nn.Linear(2, 3), "second": nn.ReLU()}),
    "ParameterList": nn.ParameterList([torch.zeros(2, 3), torch.zeros(4)]),
    "activations": [
        repr(module)
        for module in (
            nn.LeakyReLU(), nn.LeakyReLU(0.2), nn.ELU(), nn.SELU(), nn.CELU(), nn.Softplus(), nn.Softplus(2.0, 10.0), nn.Softmax(1),
            nn.LogSoftmax(-1), nn.Softmin(0), nn.Hardtanh(), nn.Hardtanh(-2.0), nn.ReLU6(), nn.Hardsigmoid(), nn.Hardswish(),
            nn.Mish(), nn.LogSigmoid(), nn.Softsign(), nn.Tanhshrink(), nn.Threshold(0.1, 20.0), nn.GLU(), nn.PReLU(), nn.PReLU(3),
        )
    ],
    "losses": [
        repr(loss())
        for loss in (
            nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss, nn.BCELoss, nn.BCEWithLogitsLoss, nn.MultiLabelSoftMarginLoss,
            nn.SoftMarginLoss, nn.KLDivLoss, nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss, nn.PoissonNLLLoss,
            nn.HingeEmbeddingLoss, nn.GaussianNLLLoss, nn.MarginRankingLoss, nn.CosineEmbeddingLoss, nn.TripletMarginLoss,
        )
    ],
    "weights of losses": list(nn.BCEWithLogitsLoss(weight=torch.ones(2), pos_weight=torch.ones(2)).state_dict()),
}  # fmt: skip

torch.set_num_threads(1)
result = {
    "torch": torch.__version__,
    "runs": {name: run(*case) for name, case in CASES.items()} | {name: run(*case, grads=False) for name, case in STACKS.items()},
    "printed": {name: module if isinstance(module, list) else repr(module) for name, module in PRINTED.items()},
}
json.dump(result, sys.stdout, separators=(",", ":"))
print()
