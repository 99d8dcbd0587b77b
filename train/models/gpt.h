#pragma once
// GPT-2 (Radford et al. 2019) on our attention, under GPT-2's names and with nanoGPT's initial values; each part has the
// variants that later models brought.
#include <memory>
#include <optional>

#include "attention/causal_self_attention.h"
#include "nn/dropout.h"
#include "nn/module_list.h"
#include "train/models/language_model.h"

namespace onestep::train {

/// Linear, activation, Linear: [..., d_model] -> [..., d_ff] -> [..., d_model].
class Mlp : public nn::Layer {
 public:
  /// Draws c_fc, then c_proj.
  Mlp(const ModelConfig& config, Generator& generator);
  Tensor forward(const Tensor& x) const override { return c_proj((*act)(c_fc(x))); }
  std::string name() const override { return "MLP"; }
  void visit(nn::Visitor& visitor) override;

  nn::Linear c_fc;
  std::unique_ptr<nn::Layer> act;
  nn::Linear c_proj;
};

/// x + attn(ln_1(x)), then x + mlp(ln_2(x)), with dropout on what is added: [B, T, d_model] -> [B, T, d_model]. The norms come
/// first (pre-norm), so that the sum passes through all blocks unchanged.
class GptBlock : public nn::Layer {
 public:
  /// Draws attn, then mlp; dropout draws from `generator` later: attention weights, attention result, mlp result.
  GptBlock(const ModelConfig& config, Generator& generator);
  Tensor forward(const Tensor& x) const override;
  /// The same for sequences one after the other (Attention::forward_apart).
  Tensor forward_apart(const Tensor& x, const std::vector<int64_t>& lengths) const;
  /// The same for tokens that follow those in the caches of attn, one a text.
  Tensor forward_cached(const Tensor& x, std::span<attention::KvCache* const> caches) const;
  std::string name() const override { return "Block"; }
  void visit(nn::Visitor& visitor) override;

  std::unique_ptr<nn::Layer> ln_1;
  attention::CausalSelfAttention attn;
  std::unique_ptr<nn::Layer> ln_2;
  std::unique_ptr<nn::Layer> mlp;
  nn::Dropout dropout;

 private:
  Tensor with_attended(const Tensor& x, const Tensor& attended) const;
};

/// All of a GPT but its head: embeddings, blocks, norm: int64 [B, T] -> [B, T, d_model].
class Transformer : public nn::Layer {
 public:
  /// Draws wte, wpe and the blocks. With config.rope there is no wpe: attention knows the positions.
  Transformer(const ModelConfig& config, int64_t vocab_size, Generator& generator);
  Tensor forward(const Tensor& tokens) const override;
  /// The same for sequences one after the other, each at positions of its own.
  Tensor forward_apart(const Tensor& tokens, const std::vector<int64_t>& lengths) const;
  /// The same for tokens that follow those in the caches of the texts; positions [B, n] are those of the tokens.
  Tensor forward_cached(const Tensor& tokens, const Tensor& positions, std::span<ModelCache* const> caches) const;
  std::string name() const override { return "Transformer"; }
  void visit(nn::Visitor& visitor) override;

  nn::Embedding wte;                 // tokens
  std::optional<nn::Embedding> wpe;  // positions
  nn::Dropout drop;
  nn::ModuleList<GptBlock> h;
  std::unique_ptr<nn::Layer> ln_f;
  bool recompute = false;  ///< The blocks keep only their inputs for the backward pass.

 private:
  template <class Apply>
  Tensor through_blocks(Tensor x, const Apply& apply) const;
  /// wte[tokens] + wpe[positions], dropped
  Tensor embedded(const Tensor& tokens, const Tensor& positions) const;
};

/// logits = lm_head(transformer(tokens)). The head's weight is that of the token embedding unless config.tie_weights is false.
class Gpt : public LanguageModel {
 public:
  /// Draws every layer as PyTorch does when it builds them (transformer, lm_head), then, as nanoGPT does, all weights again:
  /// normal(0, 0.02), biases 0, and last the projections that add to the residual stream: normal(0, 0.02 / sqrt(2 num_layers)).
  /// Throws ConfigError unless config.kind is gpt and d_ff is set.
  /// With `num_classes` the head is one over classes, `score`, as in transformers' GPT2ForSequenceClassification: the logits of
  /// a text are those of its last token.
  Gpt(const ModelConfig& config, int64_t vocab_size, Generator& generator, int64_t num_classes = 0);
  Tensor forward(const Tensor& tokens) const override;
  Tensor forward_apart(const Tensor& tokens, const std::vector<int64_t>& lengths) const override;
  Tensor next_logits(const Tensor& tokens, std::span<ModelCache* const> caches) const override;
  void set_recompute(bool on) override { transformer.recompute = on; }
  std::string name() const override { return "GPT"; }
  /// A tied head is not listed: its weight is transformer.wte.weight.
  void visit(nn::Visitor& visitor) override;

  Transformer transformer;
  nn::Linear lm_head;

 private:
  void draw_weights(int64_t num_layers, Generator& generator);

  bool tied_;
};

}  // namespace onestep::train
