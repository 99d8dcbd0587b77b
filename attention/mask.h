#pragma once
// Masks: bool tensors that are true where a key is masked, as in the book (in PyTorch's scaled_dot_product_attention true means
// attended).
#include "nn/dropout.h"

namespace onestep::attention {

/// True above the diagonal, where the key comes after the query: [T, T].
Tensor causal_mask(int64_t context_length);

/// The same, also true for keys `window` or more tokens before the query; window = 0 is no limit.
Tensor sliding_window_mask(int64_t context_length, int64_t window);

/// The rows of `mask` for the last T of S tokens: [T, S].
Tensor last_rows(const Tensor& mask, int64_t T, int64_t S);

/// product(left, right), in which row t of `left` [..., T, n] is multiplied only with the rows of `right` [..., S, m] that
/// `mask` [T, S] does not mask. Weights and gradients of 0 are not enough, since 0 x NaN is NaN: where an operand is not
/// finite, each row is multiplied with a copy of `right` whose masked rows are 0, which gives the bits of one product and its
/// gradients to rounding.
Tensor masked_product(const Tensor& left, const Tensor& right, const Tensor& mask,
                      Tensor (*product)(const Tensor& left, const Tensor& right));

/// The attention weights softmax(scores / sqrt(d_k)) over the keys that are not masked: scores [..., T, S] = queries times
/// keys, mask [T, S] -> [..., T, S]. A query whose keys are all masked gets weights 0 and gradient 0.
/// Overwrites `scores` with -inf where masked.
Tensor masked_attention_weights(const Tensor& scores, const Tensor& mask, int64_t d_k);

/// The context dropout(softmax(Q K^T / sqrt(d_k))) V over the keys that are not masked: queries [..., T, d_k], keys
/// [..., S, d_k], values [..., S, d_v], mask [T, S] -> [..., T, d_v]. Unfused if the weights [..., T, S] are
/// asked for; otherwise the fused op, equal to rounding. Masked keys and values have no influence, whatever they hold.
Tensor masked_attention(const Tensor& queries, const Tensor& keys, const Tensor& values, const Tensor& mask,
                        const nn::Dropout& dropout, Tensor* weights = nullptr);

/// masked_attention where a query attends to itself and the tokens before it, at most `window` in all unless it is 0. The
/// queries
/// [..., H, T, d_k] belong to the last T of the S tokens of keys [..., H_kv, S, d_k] and values [..., H_kv, S, d_v]; H / H_kv
/// query heads share a head of keys and values -> [..., H, T, d_v]. Without weights no [T, S] mask or weights are stored.
Tensor causal_attention(const Tensor& queries, const Tensor& keys, const Tensor& values, int64_t window,
                        const nn::Dropout& dropout, Tensor* weights = nullptr);

/// causal_attention on packed heads, [..., T, (H + 2 H_kv) d_k] -> [..., T, H d_k], without weights: the same bits as splitting
/// and merging, with one gradient for all three.
Tensor packed_causal_attention(const Tensor& qkv, int64_t num_heads, int64_t num_kv_heads, int64_t window,
                               const nn::Dropout& dropout);

}  // namespace onestep::attention
