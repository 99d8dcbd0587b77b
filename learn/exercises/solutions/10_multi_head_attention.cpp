#include "learn/exercises/tasks.h"

namespace exercises {

Tensor multi_head_attention(const Tensor& x, const MultiHeadWeights& weights, int64_t num_heads) {
  const int64_t B = x.size(0), T = x.size(1), d_out = weights.query.size(0), head_dim = d_out / num_heads;
  const auto heads = [&](const Tensor& y) { return y.view({B, T, num_heads, head_dim}).transpose(1, 2); };
  const Tensor queries = heads(linear(x, weights.query)), keys = heads(linear(x, weights.key));
  const Tensor scores = matmul(queries, keys.transpose(2, 3));  // [B, H, T, T]
  const Tensor future = triu(ones({T, T}, DType::boolean), /*diagonal=*/1);
  const Tensor masked = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
  const Tensor attn_weights = softmax(masked / std::sqrt(static_cast<double>(head_dim)), -1);
  const Tensor context = matmul(attn_weights, heads(linear(x, weights.value)));  // [B, H, T, head_dim]
  return linear(context.transpose(1, 2).reshape({B, T, d_out}), weights.out, weights.out_bias);
}

}  // namespace exercises
