#pragma once
// Masks: bool tensors that are true where a query must not look, as in the book (PyTorch's
// scaled_dot_product_attention means the opposite by true).
#include "nn/dropout.h"

namespace onestep::attention {

/// True above the diagonal, where the key comes after the query: [T, T].
Tensor causal_mask(int64_t context_length);

/// The attention weights softmax(scores / sqrt(d_k)) over the keys that `mask` leaves: scores [..., T, S] = queries times
/// keys, mask [T, S] -> [..., T, S]. A query whose keys are all masked gets weights 0 and gradient 0.
/// Overwrites `scores` with -inf where masked.
Tensor masked_attention_weights(Tensor scores, const Tensor& mask, int64_t d_k);

/// The context dropout(softmax(Q K^T / sqrt(d_k))) V over the keys that `mask` leaves: queries [..., T, d_k], keys
/// [..., S, d_k], values [..., S, d_v], mask [T, S] -> [..., T, d_v]. If the weights [..., T, S] are wanted too, it goes step
/// by step; if not, in one op, which is equal to rounding and never reads a masked key or value.
Tensor masked_attention(const Tensor& queries, const Tensor& keys, const Tensor& values, const Tensor& mask,
                        const nn::Dropout& dropout, Tensor* weights = nullptr);

/// masked_attention where a query sees itself and the tokens before it: queries [..., T, d_k], keys [..., T, d_k], values
/// [..., T, d_v] -> [..., T, d_v]. Without weights no [T, T] mask is made.
Tensor causal_attention(const Tensor& queries, const Tensor& keys, const Tensor& values, const nn::Dropout& dropout,
                        Tensor* weights = nullptr);

}  // namespace onestep::attention
