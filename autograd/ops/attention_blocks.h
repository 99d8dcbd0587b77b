#pragma once
// The work of scaled_dot_product_attention on tensors whose shapes are checked and whose batch dims are the same.
#include "autograd/tensor.h"

namespace onestep::ops {

/// Sizes and options of one call; `group` neighbouring heads of the query share one head of key and value.
struct AttentionPlan {
  int64_t heads, group, queries, keys, features, value_features;
  double scale, dropout_p;
  bool causal;
  int64_t offset, window;
  bool bf16;  ///< All tensors but the mask are bfloat16, and so are the operands of products; else none is.
};

/// q [..., T, d], k [..., S, d] and v [..., S, e], the elements of a row next to each other; mask [..., T, S] (true = may
/// attend, or float32, float64 for float64: added to the scores) and keep [..., T, S] (what dropout leaves), or undefined.
struct AttentionOperands {
  Tensor q, k = {}, v = {}, mask = {}, keep = {};
  /// For q [B, H, T, d], the last T tokens of texts of different lengths, instead of k and v: those of each text, [1, H_kv,
  /// S_b, d] and [1, H_kv, S_b, e], the rows of a head one right after the other. The plan is for the longest. Forward alone.
  TensorList text_keys = {}, text_values = {};
};

/// y = dropout(softmax(scale q k^T + mask)) v, every element written: [..., T, e]
void attend(const AttentionPlan& plan, const AttentionOperands& operands, Tensor& y);

/// Tensors of the shapes of q, k, v and of a mask that is added [..., T, S]; undefined where the gradient is not wanted.
struct AttentionGrads {
  Tensor q, k, v, mask;
};

/// Writes the gradients for dy [..., T, e], every element.
void attend_backward(const AttentionPlan& plan, const AttentionOperands& operands, const Tensor& dy, AttentionGrads& grads);

/// The same in ops that are recorded, with all weights at once.
AttentionGrads recorded_attention_grads(const AttentionPlan& plan, const AttentionOperands& operands, const Tensor& dy);

}  // namespace onestep::ops
