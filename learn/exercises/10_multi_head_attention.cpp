// Exercise 10: multi-head attention (section 3.6.2)
//
// All that came before in one function:
//   queries, keys, values   linear(x, weights.query) and so on, split into heads   [B, H, T, head_dim]
//   scores                  of each head's queries with its keys                   [B, H, T, T]
//   weights                 causal, scaled by the width of a key, softmax          [B, H, T, T]
//   context                 weights times values, heads merged                     [B, T, d_out]
//   result                  linear(context, weights.out, weights.out_bias)         [B, T, d_out]
#include "learn/exercises/tasks.h"

namespace exercises {

Tensor multi_head_attention(const Tensor& x, const MultiHeadWeights& weights, int64_t num_heads) {
  // GAP: the values go straight through, as if every token attended only to itself.
  (void)num_heads;
  return linear(linear(x, weights.value), weights.out, weights.out_bias);
}

}  // namespace exercises
