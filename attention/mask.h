#pragma once
// Masks: bool tensors that are true where a query must not look, as in the book (PyTorch's
// scaled_dot_product_attention means the opposite by true).
#include "nn/dropout.h"

namespace onestep::attention {

/// True above the diagonal, where the key comes after the query: [T, T].
Tensor causal_mask(int64_t context_length);

/// The same where a token also loses sight of those `window` or more tokens before it; window = 0 is no limit.
Tensor sliding_window_mask(int64_t context_length, int64_t window);

/// The rows of `mask` for the last T of S tokens: [T, S].
Tensor last_rows(const Tensor& mask, int64_t T, int64_t S);

/// product(left, right), in which row t of `left` [..., T, n] meets only the rows of `right` [..., S, m] that `mask` [T, S]
/// leaves it. That the masked weights and gradients are 0 is not enough: 0 x NaN is NaN. So where either is not finite, row by
/// row against a copy of `right` with zeros: the bits of the whole product, its gradients to rounding.
Tensor visible_product(const Tensor& left, const Tensor& right, const Tensor& mask,
                       Tensor (*product)(const Tensor& left, const Tensor& right));

/// The attention weights softmax(scores / sqrt(d_k)) over the keys that `mask` leaves: scores [..., T, S] = queries times
/// keys, mask [T, S] -> [..., T, S]. A query whose keys are all masked gets weights 0 and gradient 0.
/// Overwrites `scores` with -inf where masked.
Tensor masked_attention_weights(const Tensor& scores, const Tensor& mask, int64_t d_k);

/// The context dropout(softmax(Q K^T / sqrt(d_k))) V over the keys that `mask` leaves: queries [..., T, d_k], keys
/// [..., S, d_k], values [..., S, d_v], mask [T, S] -> [..., T, d_v]. If the weights [..., T, S] are wanted too, it goes step
/// by step; if not, in one op, which is equal to rounding. A masked key or value is never read, whatever it holds.
Tensor masked_attention(const Tensor& queries, const Tensor& keys, const Tensor& values, const Tensor& mask,
                        const nn::Dropout& dropout, Tensor* weights = nullptr);

/// masked_attention where a query sees itself and the tokens before it, at most `window` in all unless it is 0. The T queries
/// [..., H, T, d_k] are those of the last of S tokens, of which keys [..., H_kv, S, d_k] and values [..., H_kv, S, d_v] are
/// there; H / H_kv heads share one of keys and values -> [..., H, T, d_v]. Without weights no [T, S] mask or weights are made.
Tensor causal_attention(const Tensor& queries, const Tensor& keys, const Tensor& values, int64_t window,
                        const nn::Dropout& dropout, Tensor* weights = nullptr);

/// causal_attention of heads that lie side by side, [..., T, (H + 2 H_kv) d_k] -> [..., T, H d_k], without weights: the same
/// bits as splitting and merging, with one gradient.
Tensor packed_causal_attention(const Tensor& qkv, int64_t num_heads, int64_t num_kv_heads, int64_t window,
                               const nn::Dropout& dropout);

}  // namespace onestep::attention
