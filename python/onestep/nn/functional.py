"""Functions of layers and losses, with PyTorch's signatures; most are those of the extension."""

from __future__ import annotations

from typing import Any, Callable, Optional

import onestep
from onestep import _C
from onestep._autocast import casts
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
    kl_div,
    l1_loss,
    layer_norm,
    leaky_relu,
    linear,
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
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
    triplet_margin_loss,
)

from onestep.nn._embedding import embedding, embedding_bag  # noqa: F401
from onestep.nn._dropout import (  # noqa: F401
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    rrelu,
    rrelu_,
)
from onestep.nn._interpolate import interpolate
from onestep.nn._pooling import (  # noqa: F401
    adaptive_avg_pool3d,
    adaptive_max_pool3d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from onestep.nn._sampling import affine_grid, grid_sample  # noqa: F401
from onestep.nn._volume import conv3d, conv_transpose3d  # noqa: F401

Tensor = _C.Tensor
upsample = interpolate


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
    """x / sqrt(mean(x^2) + eps) * weight over the last dims; eps defaults to the machine epsilon of what it is computed in."""
    normalized_shape = tuple(normalized_shape)
    if not normalized_shape:
        raise RuntimeError("rms_norm: normalized_shape names no dim")
    if tuple(input.shape[input.dim() - len(normalized_shape) :]) != normalized_shape:
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape "
            f"[*, {', '.join(map(str, normalized_shape))}], but got input of size{list(input.shape)}"
        )
    dims = tuple(range(-len(normalized_shape), 0))
    x = input.float() if input.dtype in (_C.float16, _C.bfloat16) else input
    if eps is None:
        eps = onestep.finfo(x.dtype).eps
    result = (x * _C.rsqrt(x.square().mean(dims, keepdim=True) + eps)).to(input.dtype)
    return result if weight is None else (result * weight).to(input.dtype)


def _apart(result: Tensor, input: Tensor) -> Tensor:
    """The result, or a copy where it is the input's memory: one may be written to."""
    return result.clone() if result.data_ptr() == input.data_ptr() else result


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
    return _apart(parts.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*lead, c // (r * r), h * r, w * r), input)


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
    return _apart(parts.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*lead, c * r * r, h // r, w // r), input)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances of each pair of rows of [N, M], a row and those after it: [N (N - 1) / 2]."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    one, two = onestep.triu_indices(input.size(0), input.size(0), 1)
    return (input[one] - input[two]).norm(p, -1)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate by the nearest place."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate linearly in two dims, with aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """[N, C, ...] with the channels of the groups in turn: those of shape [groups, C / groups] transposed."""
    if input.dim() < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if input.size(1) % groups != 0:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {input.size(1)} channels and {groups} groups."
        )
    return _apart(input.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2), input)


native_channel_shuffle = channel_shuffle


@casts
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha mean(x^2))^beta, the mean over `size` neighbouring channels of [N, C, ...] (Krizhevsky et al. 2012)."""
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    squares = _C.pad(input.square(), [0, 0] * (input.dim() - 2) + [size // 2, (size - 1) // 2])
    mean = squares.unfold(1, size, 1).mean(-1)
    return input / mean.mul(alpha).add(k).pow(beta)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Optional[Callable[[Tensor, Tensor], Tensor]] = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)); with swap the negative's smaller distance to both."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = anchor.dim(), positive.dim(), negative.dim()
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    loss = (margin + near - far).clamp(min=0)
    return loss.sum() if reduction == "sum" else loss.mean() if reduction == "mean" else loss


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


def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) over its sum along dim; without one along 0 for 0, 1 or 3 dims, else along 1."""
    return _C.softmax(input, dim, _stacklevel, dtype)


def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x))."""
    return _C.log_softmax(input, dim, _stacklevel, dtype)


def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax(-x)."""
    return _C.softmin(input, dim, _stacklevel, dtype)


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
    layer._qkv_same_embed_dim = not use_separate_proj_weight
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


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """celu in place."""
    return celu(input, alpha, inplace=True)


def selu_(input: Tensor) -> Tensor:
    """selu in place."""
    return selu(input, inplace=True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """hardtanh in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """threshold in place."""
    return _C.threshold(input, threshold, value, inplace=True)


def _with_indices(name: str) -> Callable:
    pool = globals()[name]

    def function(*args: Any, **kwargs: Any) -> Any:
        return pool(*args, **{**kwargs, "return_indices": True})

    function.__name__ = name + "_with_indices"
    function.__doc__ = f"{name} and the places of its values."
    return function


for _name in ("max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"):
    globals()[_name + "_with_indices"] = _with_indices(_name)
del _name
