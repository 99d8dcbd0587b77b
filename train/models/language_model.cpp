#include "train/models/language_model.h"

#include <algorithm>

#include "autograd/creation.h"
#include "autograd/operators.h"
#include "autograd/ops_shape.h"
#include "autograd/random/generator.h"
#include "autograd/tensor.h"
#include "train/models/adapters.h"
#include "train/models/gpt.h"

namespace onestep::train {

attention::Options attention_options(const ModelConfig& config) {
  attention::Options a;
  a.d_in = a.d_out = config.d_model;
  a.context_length = config.context_length;
  a.num_heads = config.num_heads;
  a.dropout = config.dropout;
  a.qkv_bias = config.qkv_bias;
  a.num_kv_heads = config.num_kv_heads;
  a.window = config.window;
  a.rope = config.rope;
  a.rope_theta = config.rope_theta;
  return a;
}

void LanguageModel::check_tokens(const Tensor& tokens, int64_t already_read) const {
  ONESTEP_CHECK(ShapeError, tokens.dim() == 2 && already_read + tokens.size(1) <= context_length(),
                "language model: tokens of shape ", tokens.shape(),
                already_read > 0 ? " after " + std::to_string(already_read) + " others" : "",
                " (needs [B, T] with T up to the context length of ", context_length(), ")");
}

Tensor LanguageModel::forward_apart(const Tensor& /*tokens*/, const std::vector<int64_t>& /*lengths*/) const {
  fail<ConfigError>("language model: only a gpt keeps several sequences in a row apart: got ", name());
}

Tensor LanguageModel::start_reading(const Tensor& tokens, std::span<ModelCache* const> caches, int64_t layers) const {
  ONESTEP_CHECK(ShapeError, tokens.dim() == 2 && tokens.size(0) == std::ssize(caches), "language model: tokens of shape ",
                tokens.shape(), " for ", caches.size(), " caches (needs [B, n] and a cache for each of the B texts)");
  ONESTEP_CHECK(ShapeError, tokens.size(1) > 0, "language model: no tokens: ", tokens.shape());
  std::vector<Tensor> positions;
  for (ModelCache* const cache : caches) {
    cache->resize(static_cast<size_t>(layers));
    const int64_t already_read = cache->empty() ? 0 : cache->front().length();
    check_tokens(tokens, already_read);
    positions.push_back(arange(already_read, already_read + tokens.size(1)));
  }
  return stack(positions);
}

std::vector<attention::KvCache*> layer_caches(std::span<ModelCache* const> caches, int64_t i) {
  std::vector<attention::KvCache*> layer;
  for (ModelCache* const cache : caches) layer.push_back(&(*cache)[static_cast<size_t>(i)]);
  return layer;
}

AttentionLanguageModel::AttentionLanguageModel(const ModelConfig& config, int64_t vocab_size, Generator& generator)
    : LanguageModel(vocab_size, config.context_length),
      tok_emb_(vocab_size, config.d_model, generator),
      pos_emb_(config.context_length, config.d_model, generator),
      att_(attention::make_attention(config.attention, attention_options(config), generator)),
      head_(config.d_model, vocab_size, true, generator) {}

Tensor AttentionLanguageModel::embedded(const Tensor& tokens, const Tensor& positions) const {
  return tok_emb_(tokens) + pos_emb_(positions);
}

Tensor AttentionLanguageModel::forward(const Tensor& tokens) const {
  check_tokens(tokens);
  return head_((*att_)(embedded(tokens, arange(tokens.size(1)))));  // [B, T, V]
}

Tensor AttentionLanguageModel::next_logits(const Tensor& tokens, std::span<ModelCache* const> caches) const {
  const NoGradGuard no_grad;
  const Tensor positions = start_reading(tokens, caches, 1);
  const Tensor context = att_->forward_cached(embedded(tokens, positions), layer_caches(caches, 0));  // [B, n, d]
  return head_(context.select(1, -1));                                                                // [B, V]
}

void AttentionLanguageModel::visit(nn::Visitor& visitor) {
  visitor.child("tok_emb", tok_emb_);
  visitor.child("pos_emb", pos_emb_);
  visitor.child("att", *att_);
  visitor.child("head", head_);
}

std::unique_ptr<LanguageModel> make_language_model(const ModelConfig& config, int64_t vocab_size, Generator& generator,
                                                   int64_t num_classes) {
  vocab_size = std::max(vocab_size, config.vocab_size);
  std::unique_ptr<LanguageModel> model;
  if (config.kind == ModelKind::gpt)
    model = std::make_unique<Gpt>(config, vocab_size, generator, num_classes);
  else
    model = std::make_unique<AttentionLanguageModel>(config, vocab_size, generator);
  add_adapters(*model, config, generator);
  return model;
}

}  // namespace onestep::train
