#include "attention/einsum_attention.h"

#include "attention/heads.h"
#include "attention/mask.h"
#include "autograd/operators.h"
#include "nn/linear.h"

namespace onestep::attention {
namespace {

/// Draws the parameters of a Linear layer and reshapes them.
void draw(Tensor& weight, const Shape& weight_shape, Tensor& bias, const Shape& bias_shape, int64_t d_in, int64_t d_out,
          bool with_bias, Generator& generator) {
  const nn::Linear linear(d_in, d_out, with_bias, generator);
  weight = linear.weight.detach().view(weight_shape).requires_grad_();
  if (with_bias) bias = linear.bias.detach().view(bias_shape).requires_grad_();
}

/// x W^T + b for every head: [..., T, d_in] -> [..., H, T, head_dim]
Tensor projected(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor heads = einsum("...td,hkd->...htk", {x, weight});
  return bias.defined() ? heads + bias : heads;
}

Tensor q_times_k(const Tensor& q, const Tensor& k) { return einsum("...hqk,...hsk->...hqs", {q, k}); }
Tensor w_times_v(const Tensor& w, const Tensor& v) { return einsum("...hqs,...hsk->...hqk", {w, v}); }

}  // namespace

MultiHeadAttentionEinsum::MultiHeadAttentionEinsum(int64_t d_in, int64_t d_out, int64_t context_length, double dropout_p,
                                                   int64_t num_heads, bool qkv_bias, Generator& generator)
    : Attention(d_in, shared_width("MultiHeadAttentionEinsum", d_out, num_heads), context_length),
      dropout(dropout_p, generator),
      mask(causal_mask(context_length)) {
  const int64_t head_dim = d_out / num_heads;
  const Shape weight = {num_heads, head_dim, d_in}, bias = {num_heads, 1, head_dim};
  draw(W_query, weight, b_query, bias, d_in, d_out, qkv_bias, generator);
  draw(W_key, weight, b_key, bias, d_in, d_out, qkv_bias, generator);
  draw(W_value, weight, b_value, bias, d_in, d_out, qkv_bias, generator);
  draw(W_out, {d_out, num_heads, head_dim}, b_out, {d_out}, d_out, d_out, /*with_bias=*/true, generator);
}

void MultiHeadAttentionEinsum::visit(nn::Visitor& visitor) {
  visitor.parameter("W_query", W_query);
  visitor.parameter("b_query", b_query);
  visitor.parameter("W_key", W_key);
  visitor.parameter("b_key", b_key);
  visitor.parameter("W_value", W_value);
  visitor.parameter("b_value", b_value);
  visitor.parameter("W_out", W_out);
  visitor.parameter("b_out", b_out);
  visitor.buffer("mask", mask);
  visitor.child("dropout", dropout);
}

Tensor MultiHeadAttentionEinsum::attend(const Tensor& x, Tensor* weights, KvCache* cache) const {
  const Tensor queries = projected(x, W_query, b_query);                   // [..., H, T, head_dim]
  const Tensor new_keys = projected(x, W_key, b_key);                      // [..., H, T, head_dim]
  const Tensor new_values = projected(x, W_value, b_value);                // [..., H, T, head_dim]
  const auto [keys, values] = with_cached(cache, new_keys, new_values);    // [..., H, S, head_dim], S = T if none are cached
  const Tensor future = last_rows(mask, x.size(-2), keys.size(-2));        // [T, S]
  const Tensor scores = masked_product(queries, keys, future, q_times_k);  // [..., H, T, S]
  const Tensor attn_weights = dropout(masked_attention_weights(scores, future, head_dim()));  // [..., H, T, S]
  if (weights) *weights = attn_weights;
  const Tensor context = masked_product(attn_weights, values, future, w_times_v);  // [..., H, T, head_dim]
  return einsum("...hqk,ohk->...qo", {context, W_out}) + b_out;                    // [..., T, d_out]
}

}  // namespace onestep::attention
