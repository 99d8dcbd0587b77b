#pragma once
// Self-attention as the book builds it up: without weights, with weight matrices (v1), with Linear layers (v2).
#include "attention/attention.h"
#include "autograd/random/generator.h"
#include "nn/linear.h"

namespace onestep::attention {

// ---- the first steps, one by one: plain loops to compare the types with --------------------------------------------------

/// Attention scores of one query by a loop of dot products: query [d], x [T, d] -> [T].
Tensor naive_scores(const Tensor& query, const Tensor& x);
/// Attention scores of every token with every token by two loops of dot products: x [T, d] -> [T, T].
Tensor naive_scores(const Tensor& x);
/// Scores divided by their sum, the simplest normalisation: [T] -> [T].
Tensor sum_normalized(const Tensor& scores);
/// exp(scores) / sum(exp(scores)), which overflows where softmax does not: [T] -> [T].
Tensor naive_softmax(const Tensor& scores);
/// The sum of the tokens, each times its weight, by a loop: weights [T], x [T, d] -> [d].
Tensor naive_context(const Tensor& weights, const Tensor& x);

// ---- the types -----------------------------------------------------------------------------------------------------------

/// softmax(x x^T) x: every token attends to every token, and nothing is trained.
class SimplifiedSelfAttention : public Attention {
 public:
  explicit SimplifiedSelfAttention(int64_t d_in) : Attention(d_in, d_in) {}

  std::string name() const override { return "SimplifiedSelfAttention"; }

 private:
  Tensor attend(const Tensor& x, Tensor* weights, KvCache* cache) const override;
};

/// softmax(Q K^T / sqrt(d_out)) V with Q = x W_query, K = x W_key, V = x W_value (Vaswani et al. 2017, section 3.2.1).
class SelfAttention_v1 : public Attention {
 public:
  /// Draws W_query, W_key and W_value uniformly from [0, 1).
  SelfAttention_v1(int64_t d_in, int64_t d_out, Generator& generator = default_generator());

  std::string name() const override { return "SelfAttention_v1"; }
  void visit(nn::Visitor& visitor) override;

  Tensor W_query, W_key, W_value;  // [d_in, d_out]

 private:
  Tensor attend(const Tensor& x, Tensor* weights, KvCache* cache) const override;
};

/// As v1, with Linear layers: their weights are [d_out, d_in], with better initial values and an optional bias.
class SelfAttention_v2 : public Attention {
 public:
  /// Draws W_query, W_key and W_value in this order.
  SelfAttention_v2(int64_t d_in, int64_t d_out, bool qkv_bias = false, Generator& generator = default_generator());

  std::string name() const override { return "SelfAttention_v2"; }
  void visit(nn::Visitor& visitor) override;

  nn::Linear W_query, W_key, W_value;  // [d_in] -> [d_out]

 private:
  Tensor attend(const Tensor& x, Tensor* weights, KvCache* cache) const override;
};

}  // namespace onestep::attention
