#include "attention/self_attention.h"

#include <cmath>

#include "autograd/operators.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"

namespace onestep::attention {

Tensor naive_scores(const Tensor& query, const Tensor& x) {
  std::vector<Tensor> scores;
  for (int64_t i = 0; i < x.size(0); ++i) scores.push_back(dot(x[i], query));
  return stack(scores);
}

Tensor naive_scores(const Tensor& x) {
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < x.size(0); ++i) rows.push_back(naive_scores(x[i], x));
  return stack(rows);
}

Tensor sum_normalized(const Tensor& scores) { return scores / sum(scores); }

Tensor naive_softmax(const Tensor& scores) { return exp(scores) / sum(exp(scores)); }

Tensor naive_context(const Tensor& weights, const Tensor& x) {
  Tensor context = zeros({x.size(1)}, x.dtype());
  for (int64_t i = 0; i < x.size(0); ++i) context = context + weights[i] * x[i];
  return context;
}

Tensor SimplifiedSelfAttention::attend(const Tensor& x, Tensor* weights, KvCache* cache) const {
  const Tensor keys = with_cached(cache, x, x).first;       // [..., S, d_in], S = T unless there are cached tokens
  const Tensor scores = matmul(x, keys.transpose(-2, -1));  // [..., T, S]
  const Tensor attn_weights = softmax(scores, -1);          // [..., T, S]
  if (weights) *weights = attn_weights;
  return matmul(attn_weights, keys);  // [..., T, d_in]
}

SelfAttention_v1::SelfAttention_v1(int64_t d_in, int64_t d_out, Generator& generator)
    : Attention(d_in, d_out),
      W_query(rand({d_in, d_out}, generator).requires_grad_()),
      W_key(rand({d_in, d_out}, generator).requires_grad_()),
      W_value(rand({d_in, d_out}, generator).requires_grad_()) {}

void SelfAttention_v1::visit(nn::Visitor& visitor) {
  visitor.parameter("W_query", W_query);
  visitor.parameter("W_key", W_key);
  visitor.parameter("W_value", W_value);
}

Tensor SelfAttention_v1::attend(const Tensor& x, Tensor* weights, KvCache* cache) const {
  const Tensor queries = matmul(x, W_query);  // [..., T, d_out]
  const auto [keys, values] =
      with_cached(cache, matmul(x, W_key), matmul(x, W_value));   // [..., S, d_out], S = T if none are cached
  const Tensor scores = matmul(queries, keys.transpose(-2, -1));  // [..., T, S]
  const auto d_k = static_cast<double>(keys.size(-1));
  const Tensor attn_weights = softmax(scores / std::sqrt(d_k), -1);  // [..., T, S]
  if (weights) *weights = attn_weights;
  return matmul(attn_weights, values);  // [..., T, d_out]
}

SelfAttention_v2::SelfAttention_v2(int64_t d_in, int64_t d_out, bool qkv_bias, Generator& generator)
    : Attention(d_in, d_out),
      W_query(d_in, d_out, qkv_bias, generator),
      W_key(d_in, d_out, qkv_bias, generator),
      W_value(d_in, d_out, qkv_bias, generator) {}

void SelfAttention_v2::visit(nn::Visitor& visitor) {
  visitor.child("W_query", W_query);
  visitor.child("W_key", W_key);
  visitor.child("W_value", W_value);
}

Tensor SelfAttention_v2::attend(const Tensor& x, Tensor* weights, KvCache* cache) const {
  const Tensor queries = W_query(x);                                     // [..., T, d_out]
  const auto [keys, values] = with_cached(cache, W_key(x), W_value(x));  // [..., S, d_out], S = T if none are cached
  const Tensor scores = matmul(queries, keys.transpose(-2, -1));         // [..., T, S]
  const auto d_k = static_cast<double>(keys.size(-1));
  const Tensor attn_weights = softmax(scores / std::sqrt(d_k), -1);  // [..., T, S]
  if (weights) *weights = attn_weights;
  return matmul(attn_weights, values);  // [..., T, d_out]
}

}  // namespace onestep::attention
