"""Functions of layers and losses, with PyTorch's signatures; most are those of the extension."""

from __future__ import annotations

from typing import Any, Optional

import onestep
from onestep import _C
from onestep._C import (  # noqa: F401
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    batch_norm,
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    celu,
    conv1d,
    conv2d,
    conv_transpose1d,
    conv_transpose2d,
    cosine_embedding_loss,
    cosine_similarity,
    cross_entropy,
    elu,
    embedding,
    gaussian_nll_loss,
    gelu,
    glu,
    group_norm,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hinge_embedding_loss,
    huber_loss,
    instance_norm,
    interpolate,
    kl_div,
    l1_loss,
    layer_norm,
    leaky_relu,
    linear,
    log_softmax,
    logsigmoid,
    margin_ranking_loss,
    max_pool1d,
    max_pool2d,
    mish,
    mse_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    normalize,
    one_hot,
    pad,
    pairwise_distance,
    poisson_nll_loss,
    prelu,
    relu,
    relu6,
    relu_,
    scaled_dot_product_attention,
    selu,
    sigmoid,
    silu,
    smooth_l1_loss,
    soft_margin_loss,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
    triplet_margin_loss,
)

Tensor = _C.Tensor
upsample = interpolate


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zeroes each element with probability p and scales the others by 1 / (1 - p)."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    return _C.dropout(input, p, training, inplace)


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool, batched_dims: int) -> Tensor:
    """Dropout with one draw for each channel; an input without a batch (batched_dims - 1 dims) keeps its shape."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    if input.dim() == batched_dims - 1:
        return _drop_channels(input.unsqueeze(0), p, training, False, batched_dims).squeeze(0)
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    with onestep.no_grad():
        mask = input.new_empty(input.shape[:2] + (1,) * (input.dim() - 2))
        mask = mask.zero_() if p == 1.0 else mask.bernoulli_(1 - p).div_(1 - p)
    return input.mul_(mask) if inplace else input * mask


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of [N, C, L] or [C, L]."""
    return _drop_channels(input, p, training, inplace, 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of [N, C, H, W]."""
    return _drop_channels(input, p, training, inplace, 0)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of [N, C, D, H, W] or [C, D, H, W]."""
    return _drop_channels(input, p, training, inplace, 5)


feature_dropout = dropout2d


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """y_k = x1^T W_k x2 + b_k: [..., I], [..., J] with weight [K, I, J] -> [..., K]."""
    k, i, j = weight.shape
    if input1.shape[:-1] != input2.shape[:-1] or input1.size(-1) != i or input2.size(-1) != j:
        raise RuntimeError(
            f"bilinear: inputs of shapes {list(input1.shape)} and {list(input2.shape)} do not fit a weight of "
            f"{list(weight.shape)}"
        )
    rows1, rows2 = input1.reshape(-1, i), input2.reshape(-1, j)
    # [K, N, J] = x1 W_k; the product with x2 is summed over J
    result = (_C.matmul(rows1, weight) * rows2).sum(-1, dtype=weight.dtype).t()
    result = result.reshape(*input1.shape[:-1], k)
    return result if bias is None else result + bias


def rms_norm(input: Tensor, normalized_shape: Any, weight: Optional[Tensor] = None, eps: Optional[float] = None) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dims; eps defaults to the dtype's machine epsilon."""
    normalized_shape = tuple(normalized_shape)
    if not normalized_shape:
        raise RuntimeError("rms_norm: normalized_shape names no dim")
    if tuple(input.shape[input.dim() - len(normalized_shape) :]) != normalized_shape:
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape "
            f"[*, {', '.join(map(str, normalized_shape))}], but got input of size{list(input.shape)}"
        )
    if eps is None:
        eps = onestep.finfo(input.dtype).eps
    dims = tuple(range(-len(normalized_shape), 0))
    x = input.float() if input.dtype in (_C.float16, _C.bfloat16) else input
    result = (x * _C.rsqrt(x.square().mean(dims, keepdim=True) + eps)).to(input.dtype)
    return result if weight is None else result * weight


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """[..., C r^2, H, W] -> [..., C, H r, W r]."""
    r = upscale_factor
    *lead, c, h, w = input.shape
    if c % (r * r) != 0:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    n = len(lead)
    parts = input.reshape(*lead, c // (r * r), r, r, h, w)
    return parts.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*lead, c // (r * r), h * r, w * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """[..., C, H r, W r] -> [..., C r^2, H, W]."""
    r = downscale_factor
    *lead, c, h, w = input.shape
    if h % r != 0 or w % r != 0:
        raise RuntimeError(
            f"pixel_unshuffle expects height and width to be divisible by downscale_factor, but got {h} x {w} and {r}"
        )
    n = len(lead)
    parts = input.reshape(*lead, c, h // r, r, w // r, r)
    return parts.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*lead, c * r * r, h // r, w // r)


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of images [N, C, H, W] as columns: [N, C KH KW, L]."""
    return _C.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The sums of columns [N, C KH KW, L] in images [N, C, output_size...]."""
    return _C.col2im(input, output_size, kernel_size, dilation, padding, stride)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability of the targets over all alignments; lengths are tensors or sequences of numbers."""
    inputs, ours = (n if isinstance(n, Tensor) else onestep.tensor(n) for n in (input_lengths, target_lengths))
    return _C.ctc_loss(log_probs, targets, inputs, ours, blank, reduction, zero_infinity)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution; `hard`: one-hot forwards, the soft sample's gradient."""
    gumbels = -_C.empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = _C.zeros_like(logits).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0)
    return chosen - soft.detach() + soft


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Optional[Tensor],
    in_proj_bias: Optional[Tensor],
    bias_k: Optional[Tensor],
    bias_v: Optional[Tensor],
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Optional[Tensor],
    training: bool = True,
    key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True,
    attn_mask: Optional[Tensor] = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Optional[Tensor] = None,
    k_proj_weight: Optional[Tensor] = None,
    v_proj_weight: Optional[Tensor] = None,
    static_k: Optional[Tensor] = None,
    static_v: Optional[Tensor] = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Any:
    """nn.MultiheadAttention with these weights: query [T, B, E] or [T, E] -> (output, weights or None)."""
    if static_k is not None or static_v is not None:
        raise NotImplementedError("multi_head_attention_forward: static_k and static_v")
    if query.size(-1) != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {query.size(-1)}")
    from onestep.nn.modules.attention import MultiheadAttention

    state = onestep.get_rng_state()  # the layer draws weights, which are not used
    dims = (key.size(-1), value.size(-1)) if use_separate_proj_weight else (None, None)
    layer = MultiheadAttention(embed_dim_to_check, num_heads, dropout_p, True, False, add_zero_attn, *dims)
    onestep.set_rng_state(state)
    own = layer._parameters
    own.update(in_proj_weight=in_proj_weight, in_proj_bias=in_proj_bias)
    layer.__dict__.update(bias_k=bias_k, bias_v=bias_v)  # no parameters of a layer without them
    own.update(q_proj_weight=q_proj_weight, k_proj_weight=k_proj_weight, v_proj_weight=v_proj_weight)
    layer.out_proj._parameters.update(weight=out_proj_weight, bias=out_proj_bias)
    return layer.train(training)(query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """leaky_relu in place."""
    return leaky_relu(input, negative_slope, inplace=True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """elu in place."""
    return elu(input, alpha, inplace=True)
