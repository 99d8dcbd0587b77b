#pragma once
// Next-token models: token ids in, logits over the vocabulary out.
#include <memory>
#include <span>
#include <vector>

#include "attention/factory.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "train/config/config.h"

namespace onestep::train {

/// What the layers of a model remember of the tokens that it has read: one cache a layer with attention.
using ModelCache = std::vector<attention::KvCache>;
/// Those of layer `i` in several caches.
std::vector<attention::KvCache*> layer_caches(std::span<ModelCache* const> caches, int64_t i);

/// A model over a vocabulary of V tokens with a context of up to T of them.
class LanguageModel : public nn::Module {
 public:
  LanguageModel(int64_t vocab_size, int64_t context_length, int64_t num_classes = 0)
      : vocab_size_(vocab_size), context_length_(context_length), num_classes_(num_classes) {}
  /// tokens, int64 [B, T'] with T' <= context_length -> logits [B, T', V]. Throws ShapeError on ids outside the vocabulary.
  virtual Tensor forward(const Tensor& tokens) const = 0;
  /// The same for sequences that lie one after the other in the rows of `tokens`, `lengths` tokens each: as if each were alone,
  /// at its own positions. Throws ConfigError where the kind of model cannot keep them apart.
  virtual Tensor forward_apart(const Tensor& tokens, const std::vector<int64_t>& lengths) const;
  /// For B texts, which may be of different lengths: tokens, int64 [B, n], of which tokens[b] follow those in caches[b] (none,
  /// if it is empty), which takes them up -> the logits [B, V] after the last of them: in evaluation mode the last row of
  /// forward(all tokens), bit for bit. Not recorded. Throws as forward does for all tokens together, and ShapeError for no
  /// tokens.
  virtual Tensor next_logits(const Tensor& tokens, std::span<ModelCache* const> caches) const = 0;
  /// Whether the blocks of the model, where it has some, keep only their inputs for the backward pass and are computed again
  /// there (autograd::checkpoint).
  virtual void set_recompute(bool /*on*/) {}
  int64_t vocab_size() const { return vocab_size_; }
  int64_t context_length() const { return context_length_; }
  /// Classes of texts for which the logits stand; 0 where they stand for the tokens of the vocabulary.
  int64_t num_classes() const { return num_classes_; }

 protected:
  /// Throws ShapeError unless tokens are [B, T'], T' and the tokens already read being at most context_length.
  void check_tokens(const Tensor& tokens, int64_t already_read = 0) const;
  /// The positions of the tokens, int64 [B, n], after those in the caches of `layers` layers, made if there are none yet.
  /// Throws ShapeError unless tokens, at least one, fit after them.
  Tensor start_reading(const Tensor& tokens, std::span<ModelCache* const> caches, int64_t layers) const;

 private:
  int64_t vocab_size_, context_length_, num_classes_;
};

/// One attention layer between embeddings and a head: logits = head(att(tok_emb[tokens] + pos_emb[0..T-1])). No residual, no
/// norm.
class AttentionLanguageModel : public LanguageModel {
 public:
  /// Draws the parameters from `generator` in the order tok_emb, pos_emb, att, head; dropout draws from it later.
  AttentionLanguageModel(const ModelConfig& config, int64_t vocab_size, Generator& generator);
  Tensor forward(const Tensor& tokens) const override;
  Tensor next_logits(const Tensor& tokens, std::span<ModelCache* const> caches) const override;
  void visit(nn::Visitor& visitor) override;
  std::string name() const override { return "AttentionLanguageModel"; }

 private:
  /// tok_emb[tokens] + pos_emb[positions]: [B, T], [T] or [B, T] -> [B, T, d]
  Tensor embedded(const Tensor& tokens, const Tensor& positions) const;

  nn::Embedding tok_emb_, pos_emb_;
  std::unique_ptr<attention::Attention> att_;
  nn::Linear head_;
};

/// What the attention layers of a model are built from. Biases are those of kind attention.
attention::Options attention_options(const ModelConfig& config);

/// The model a config describes, with its adapters, which are drawn last, for `vocab_size` tokens or config.vocab_size if that
/// is more.
std::unique_ptr<LanguageModel> make_language_model(const ModelConfig& config, int64_t vocab_size, Generator& generator,
                                                   int64_t num_classes = 0);

}  // namespace onestep::train
