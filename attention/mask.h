#pragma once
// Masks: bool tensors that are true where a query must not look, as in the book (PyTorch's
// scaled_dot_product_attention means the opposite by true).
#include "autograd/ops.h"

namespace onestep::attention {

/// True above the diagonal, where the key comes after the query: [T, T].
Tensor causal_mask(int64_t context_length);

/// The attention weights softmax(scores / sqrt(d_k)) over the keys that `mask` leaves: scores [..., T, S] = queries times
/// keys, mask [T, S] -> [..., T, S]. A query whose keys are all masked gets weights 0 and gradient 0.
/// Overwrites `scores` with -inf where masked.
Tensor masked_attention_weights(Tensor scores, const Tensor& mask, int64_t d_k);

}  // namespace onestep::attention
