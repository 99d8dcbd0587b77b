#include "attention/multi_head_attention.h"

#include "attention/mask.h"
#include "autograd/ops_shape.h"

namespace onestep::attention {

MultiHeadAttentionWrapper::MultiHeadAttentionWrapper(int64_t d_in, int64_t d_out, int64_t context_length, double dropout,
                                                     int64_t num_heads, bool qkv_bias, Generator& generator)
    : Attention(d_in, shared_width("MultiHeadAttentionWrapper", d_out * num_heads, num_heads), context_length) {
  for (int64_t i = 0; i < num_heads; ++i) heads.emplace_back(d_in, d_out, context_length, dropout, qkv_bias, generator);
}

Tensor MultiHeadAttentionWrapper::attend(const Tensor& x, Tensor* weights, KvCache* cache) const {
  std::vector<Tensor> contexts, head_weights;
  for (int64_t i = 0; i < heads.size(); ++i) {
    const CausalAttention& head = heads[i];
    if (!weights) {
      contexts.push_back(cache ? head.forward_cached(x, cache->head(static_cast<size_t>(i))) : head(x));  // [..., T, d_out]
      continue;
    }
    const AttentionResult result = head.forward_with_weights(x);
    contexts.push_back(result.context);      // [..., T, d_out]
    head_weights.push_back(result.weights);  // [..., T, T]
  }
  if (weights) *weights = stack(head_weights, -3);  // [..., H, T, T]
  return cat(contexts, -1);                         // [..., T, H * d_out]
}

MultiHeadAttention::MultiHeadAttention(int64_t d_in, int64_t d_out, int64_t context_length, double dropout_p, int64_t num_heads,
                                       bool qkv_bias, Generator& generator)
    : Attention(d_in, shared_width("MultiHeadAttention", d_out, num_heads), context_length),
      W_query(d_in, d_out, qkv_bias, generator),
      W_key(d_in, d_out, qkv_bias, generator),
      W_value(d_in, d_out, qkv_bias, generator),
      out_proj(d_out, d_out, /*bias=*/true, generator),
      dropout(dropout_p, generator),
      mask(causal_mask(context_length)),
      num_heads_(num_heads) {}

void MultiHeadAttention::visit(nn::Visitor& visitor) {
  visitor.buffer("mask", mask);
  visitor.child("W_query", W_query);
  visitor.child("W_key", W_key);
  visitor.child("W_value", W_value);
  visitor.child("out_proj", out_proj);
  visitor.child("dropout", dropout);
}

Tensor MultiHeadAttention::attend(const Tensor& x, Tensor* weights, KvCache* cache) const {
  const Tensor queries = split_heads(W_query(x), num_heads_);                                // [..., H, T, head_dim]
  const Tensor new_keys = split_heads(W_key(x), num_heads_);                                 // [..., H, T, head_dim]
  const Tensor new_values = split_heads(W_value(x), num_heads_);                             // [..., H, T, head_dim]
  const auto [keys, values] = with_cached(cache, new_keys, new_values);                      // [..., H, S, head_dim]
  const Tensor future = last_rows(mask, x.size(-2), keys.size(-2));                          // [T, S]
  const Tensor context = masked_attention(queries, keys, values, future, dropout, weights);  // [..., H, T, head_dim]
  return out_proj(merge_heads(context));                                                     // [..., T, d_out]
}

}  // namespace onestep::attention
