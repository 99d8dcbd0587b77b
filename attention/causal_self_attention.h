#pragma once
#include <optional>

#include "attention/attention.h"
#include "attention/options.h"
#include "autograd/random/generator.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/rms_norm.h"

namespace onestep::attention {

/// Multi-head attention as GPT-2 has it: one projection gives queries, keys and values concatenated, so that a pass needs one
/// product where MultiHeadAttention needs three (Radford et al. 2019). The mask is not stored: it follows from the positions.
/// What later models added is off by default: grouped queries, whose heads share keys and values (Ainslie et al. 2023), a
/// sliding window (Beltagy et al. 2020), rotary position embedding in GPT-NeoX's and LLaMA's convention (Su et al. 2021), heads
/// whose width is not d_out / num_heads, and normalised queries and keys (Dehghani et al. 2023), the last two as in Qwen3.
class CausalSelfAttention : public Attention {
 public:
  /// Draws c_attn, then c_proj (weight, then bias); dropout masks come from `generator`, which must outlive the module. Throws
  /// ShapeError unless all sizes are positive, num_heads divides d_out where no head_dim is given, and num_kv_heads divides
  /// num_heads (and heads are of even width with rope), ConfigError unless 0 <= dropout <= 1, window >= 0 and rope_theta >= 1.
  explicit CausalSelfAttention(const Options& options, Generator& generator = default_generator());

  std::string name() const override { return "CausalSelfAttention"; }
  void visit(nn::Visitor& visitor) override;

  const Options& options() const { return options_; }  ///< As given, but for num_kv_heads = 0 and head_dim = 0.
  int64_t head_dim() const { return options_.head_dim; }

  nn::Linear c_attn;                          // [d_in] -> [(H + 2 H_kv) head_dim]: queries, keys, values
  nn::Linear c_proj;                          // [H head_dim] -> [d_out]
  std::optional<nn::RMSNorm> q_norm, k_norm;  // of each head, with qk_norm
  nn::Dropout dropout;                        // on the attention weights

 private:
  Tensor attend(const Tensor& x, Tensor* weights, KvCache* cache) const override;
  /// One product with each of the weights for all texts.
  Tensor attend_each(const Tensor& x, std::span<KvCache* const> caches) const override;
  /// One product with each of the weights for all sequences.
  Tensor attend_apart(const Tensor& x, const std::vector<int64_t>& lengths) const override;
  /// Queries [..., H, T, head_dim], keys and values [..., H_kv, T, head_dim], normalised but not turned.
  struct Heads {
    Tensor queries, keys, values;

    /// Those of one text.
    Heads text(int64_t b) const;
  };
  Heads split_packed(const Tensor& packed) const;
  /// With rope, queries and keys turned by their positions, the first of which is given.
  Heads turned(Heads heads, int64_t position) const;
  /// The heads' contexts, concatenated, of packed queries, keys and values: [..., T, (H + 2 H_kv) head_dim] -> [..., T, H
  /// head_dim].
  Tensor context(const Tensor& packed, Tensor* weights, KvCache* cache) const;
  /// The same of heads.
  Tensor context(Heads heads, Tensor* weights, KvCache* cache) const;

  Options options_;
};

}  // namespace onestep::attention
