#include "attention/causal_attention.h"

#include "attention/mask.h"

namespace onestep::attention {

CausalAttention::CausalAttention(int64_t d_in, int64_t d_out, int64_t context_length, double dropout_p, bool qkv_bias,
                                 Generator& generator)
    : Attention(d_in, d_out, context_length),
      W_query(d_in, d_out, qkv_bias, generator),
      W_key(d_in, d_out, qkv_bias, generator),
      W_value(d_in, d_out, qkv_bias, generator),
      dropout(dropout_p, generator),
      mask(causal_mask(context_length)) {}

void CausalAttention::visit(nn::Visitor& visitor) {
  visitor.buffer("mask", mask);
  visitor.child("W_query", W_query);
  visitor.child("W_key", W_key);
  visitor.child("W_value", W_value);
  visitor.child("dropout", dropout);
}

Tensor CausalAttention::attend(const Tensor& x, Tensor* weights, KvCache* cache) const {
  const Tensor queries = W_query(x);                                         // [..., T, d_out]
  const auto [keys, values] = with_cached(cache, W_key(x), W_value(x));      // [..., S, d_out], S = T if none are cached
  const Tensor future = last_rows(mask, x.size(-2), keys.size(-2));          // [T, S]
  return masked_attention(queries, keys, values, future, dropout, weights);  // [..., T, d_out]
}

}  // namespace onestep::attention
