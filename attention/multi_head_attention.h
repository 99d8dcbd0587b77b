#pragma once
#include "attention/causal_attention.h"
#include "attention/heads.h"
#include "nn/module_list.h"

namespace onestep::attention {

/// Several CausalAttention heads, each with weights of its own; their results are concatenated on the last dim.
class MultiHeadAttentionWrapper : public Attention {
 public:
  /// Builds the heads in order; `d_out` is the width of one head, so the result has num_heads * d_out. Throws ShapeError unless
  /// all sizes are positive, ConfigError unless 0 <= dropout <= 1.
  MultiHeadAttentionWrapper(int64_t d_in, int64_t d_out, int64_t context_length, double dropout, int64_t num_heads,
                            bool qkv_bias = false, Generator& generator = default_generator());

  std::string name() const override { return "MultiHeadAttentionWrapper"; }
  void visit(nn::Visitor& visitor) override { visitor.child("heads", heads); }

  nn::ModuleList<CausalAttention> heads;

 private:
  Tensor attend(const Tensor& x, Tensor* weights, KvCache* cache) const override;
};

/// All heads at once: one projection each for queries, keys and values, split into heads of d_out / num_heads features, and
/// an output projection that mixes the heads (Vaswani et al. 2017, section 3.2.2).
class MultiHeadAttention : public Attention {
 public:
  /// Draws W_query, W_key, W_value and out_proj (weight, then bias) in this order; dropout masks come from `generator`, which
  /// must outlive the module. Throws ShapeError unless all sizes are positive and num_heads divides d_out, ConfigError unless
  /// 0 <= dropout <= 1.
  MultiHeadAttention(int64_t d_in, int64_t d_out, int64_t context_length, double dropout, int64_t num_heads,
                     bool qkv_bias = false, Generator& generator = default_generator());

  std::string name() const override { return "MultiHeadAttention"; }
  void visit(nn::Visitor& visitor) override;

  int64_t num_heads() const { return num_heads_; }
  int64_t head_dim() const { return d_out() / num_heads_; }

  nn::Linear W_query, W_key, W_value;  // [d_in] -> [d_out]
  nn::Linear out_proj;                 // [d_out] -> [d_out]
  nn::Dropout dropout;                 // on the attention weights
  Tensor mask;                         // bool [context_length, context_length], true where a key comes after the query

 private:
  Tensor attend(const Tensor& x, Tensor* weights, KvCache* cache) const override;

  int64_t num_heads_;
};

}  // namespace onestep::attention
