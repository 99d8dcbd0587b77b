#pragma once
#include "attention/attention.h"
#include "attention/options.h"
#include "nn/dropout.h"
#include "nn/linear.h"

namespace onestep::attention {

/// Multi-head attention as GPT-2 has it: one projection gives queries, keys and values side by side, so that a pass needs one
/// product where MultiHeadAttention needs three (Radford et al. 2019). The mask is not stored: it follows from the positions.
class CausalSelfAttention : public Attention {
 public:
  /// Draws c_attn, then c_proj (weight, then bias); dropout masks come from `generator`, which must outlive the module. Throws
  /// ShapeError unless all sizes are positive and num_heads divides d_out, ConfigError unless 0 <= dropout <= 1.
  explicit CausalSelfAttention(const AttentionOptions& options, Generator& generator = default_generator());

  std::string name() const override { return "CausalSelfAttention"; }
  void visit(nn::Visitor& visitor) override;

  int64_t num_heads() const { return num_heads_; }
  int64_t head_dim() const { return d_out() / num_heads_; }

  nn::Linear c_attn;    // [d_in] -> [3 d_out]: queries, keys, values
  nn::Linear c_proj;    // [d_out] -> [d_out]
  nn::Dropout dropout;  // on the attention weights

 private:
  Tensor attend(const Tensor& x, Tensor* weights) const override;

  int64_t num_heads_;
};

}  // namespace onestep::attention
