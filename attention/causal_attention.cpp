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

Tensor CausalAttention::attend(const Tensor& x, Tensor* weights) const {
  const int64_t T = x.size(-2);
  const Tensor queries = W_query(x);                                         // [..., T, d_out]
  const Tensor keys = W_key(x);                                              // [..., T, d_out]
  const Tensor values = W_value(x);                                          // [..., T, d_out]
  const Tensor future = mask.slice(0, 0, T).slice(1, 0, T);                  // [T, T]
  return masked_attention(queries, keys, values, future, dropout, weights);  // [..., T, d_out]
}

}  // namespace onestep::attention
