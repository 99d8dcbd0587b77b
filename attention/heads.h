#pragma once
#include "autograd/tensor.h"

namespace onestep::attention {

/// Splits the features into heads: [..., T, d_out] -> [..., H, T, d_out / H]. The view comes first and the transpose after it:
/// a view alone would mix tokens and heads.
Tensor split_heads(const Tensor& x, int64_t num_heads);
/// Concatenates the heads of each token again: [..., H, T, head_dim] -> [..., T, H * head_dim].
Tensor merge_heads(const Tensor& x);

/// Every head `times` times in a row (torch.repeat_interleave): [..., H, T, head_dim] -> [..., H * times, T, head_dim].
Tensor repeat_heads(const Tensor& x, int64_t times);

/// d_out, checked to be divisible by num_heads before any layer draws its initial values. Throws ShapeError naming the type.
int64_t shared_width(const char* name, int64_t d_out, int64_t num_heads);

}  // namespace onestep::attention
