#pragma once
#include <optional>

#include "autograd/ops_nn.h"
#include "nn/linear.h"

namespace onestep::nn {

struct MultiheadAttentionOptions {
  double dropout = 0.0;              ///< In training, on the attention weights.
  bool bias = true;                  ///< Of all four projections.
  bool add_bias_kv = false;          ///< A learned key and value after the others.
  bool add_zero_attn = false;        ///< A key and value of zeros after the others.
  std::optional<int64_t> kdim = {};  ///< Features of keys; default embed_dim.
  std::optional<int64_t> vdim = {};  ///< Features of values; default embed_dim.
  bool batch_first = false;          ///< Tensors are [B, T, ...] instead of [T, B, ...].
};

/// What forward takes by keyword. In masks that are bool true means: may not attend, as in PyTorch's module (and unlike
/// scaled_dot_product_attention); floating ones are added to the scores.
struct MultiheadAttentionCall {
  Tensor key_padding_mask = {};      ///< [B, S], or [S] without a batch.
  bool need_weights = true;          ///< False: the weights are undefined, and attention is fused.
  Tensor attn_mask = {};             ///< [T, S] or [B num_heads, T, S].
  bool average_attn_weights = true;  ///< Weights [B, T, S], else [B, num_heads, T, S].
  bool is_causal = false;            ///< Query i attends to keys 0..i; attn_mask may be left out, and is not looked at.
};
struct MultiheadAttentionOutput {
  Tensor output, weights;
};

/// The output projection of MultiheadAttention: a Linear under the name that PyTorch prints.
class NonDynamicallyQuantizableLinear : public Linear {
 public:
  using Linear::Linear;
  std::string name() const override { return "NonDynamicallyQuantizableLinear"; }
};

/// Attention of num_heads heads side by side: queries [T, B, embed_dim], keys [S, B, kdim] and values [S, B, vdim], with
/// batch_first [B, T, ...], or one sequence [T, ...] (Vaswani et al. 2017; torch.nn.MultiheadAttention). A query that may
/// attend to no key gets 0 and gradient 0.
class MultiheadAttention : public Module {
 public:
  /// Draws out_proj, then the input projection (or q_proj_weight, k_proj_weight, v_proj_weight), bias_k, bias_v; dropout masks
  /// come from `generator`, which must outlive the module. Throws ShapeError unless sizes are positive and num_heads divides
  /// embed_dim, ConfigError unless 0 <= dropout <= 1.
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& options = {},
                     Generator& generator = default_generator());

  /// Throws ShapeError on shapes that do not fit.
  MultiheadAttentionOutput forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const MultiheadAttentionCall& call = {}) const;
  MultiheadAttentionOutput operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const MultiheadAttentionCall& call = {}) const {
    const RunningModule running(*this);
    return forward(query, key, value, call);
  }
  std::string name() const override { return "MultiheadAttention"; }
  void visit(Visitor& visitor) override;

  Tensor in_proj_weight;                               // [3 embed_dim, embed_dim], or undefined with another kdim or vdim
  Tensor q_proj_weight, k_proj_weight, v_proj_weight;  // [embed_dim, embed_dim, kdim or vdim], then
  Tensor in_proj_bias;                                 // [3 embed_dim], or undefined
  Tensor bias_k, bias_v;                               // [1, 1, embed_dim], or undefined
  NonDynamicallyQuantizableLinear out_proj;            // [embed_dim] -> [embed_dim]

 private:
  /// Projection i of queries, keys and values (0, 1, 2).
  Tensor projected(int64_t i, const Tensor& x) const;
  /// One mask [.., T, S + extra] of attn_mask, key_padding_mask and is_causal: undefined, bool (true = may attend) or floating.
  Tensor merged_mask(const MultiheadAttentionCall& call, const Shape& weights, int64_t extra, DType dtype) const;
  /// [B, S, embed_dim] with the keys or values that the options add.
  Tensor with_added(const Tensor& x, const Tensor& bias) const;
  void check_inputs(const Tensor& query, const Tensor& key, const Tensor& value) const;

  int64_t embed_dim_, num_heads_;
  MultiheadAttentionOptions options_;
  Generator* generator_;
};

}  // namespace onestep::nn
