#include "attention/causal_self_attention.h"

#include "attention/heads.h"
#include "attention/mask.h"

namespace onestep::attention {

CausalSelfAttention::CausalSelfAttention(const AttentionOptions& o, Generator& generator)
    : Attention(o.d_in, shared_width("CausalSelfAttention", o.d_out, o.num_heads), o.context_length),
      c_attn(o.d_in, 3 * o.d_out, o.qkv_bias, generator),
      c_proj(o.d_out, o.d_out, o.out_bias, generator),
      dropout(o.dropout, generator),
      num_heads_(o.num_heads) {}

void CausalSelfAttention::visit(nn::Visitor& visitor) {
  visitor.child("c_attn", c_attn);
  visitor.child("c_proj", c_proj);
  visitor.child("dropout", dropout);
}

Tensor CausalSelfAttention::attend(const Tensor& x, Tensor* weights) const {
  const std::vector<Tensor> qkv = split(c_attn(x), d_out(), -1);                     // 3 x [..., T, d_out]
  const Tensor queries = split_heads(qkv[0], num_heads_);                            // [..., H, T, head_dim]
  const Tensor keys = split_heads(qkv[1], num_heads_);                               // [..., H, T, head_dim]
  const Tensor values = split_heads(qkv[2], num_heads_);                             // [..., H, T, head_dim]
  const Tensor context = causal_attention(queries, keys, values, dropout, weights);  // [..., H, T, head_dim]
  return c_proj(merge_heads(context));                                               // [..., T, d_out]
}

}  // namespace onestep::attention
