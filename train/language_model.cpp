#include "train/language_model.h"

#include "autograd/ops.h"
#include "train/gpt.h"

namespace onestep::train {
namespace {

attention::AttentionOptions attention_options(const ModelConfig& config) {
  attention::AttentionOptions a;
  a.d_in = a.d_out = config.d_model;
  a.context_length = config.context_length;
  a.num_heads = config.num_heads;
  a.dropout = config.dropout;
  a.qkv_bias = config.qkv_bias;
  return a;
}

}  // namespace

void LanguageModel::check_tokens(const Tensor& tokens) const {
  check<ShapeError>(tokens.dim() == 2 && tokens.size(1) <= context_length(), "language model: tokens of shape ", tokens.shape(),
                    " (needs [B, T] with T up to the context length of ", context_length(), ")");
}

AttentionLanguageModel::AttentionLanguageModel(const ModelConfig& config, int64_t vocab_size, Generator& generator)
    : LanguageModel(vocab_size, config.context_length),
      tok_emb_(vocab_size, config.d_model, generator),
      pos_emb_(config.context_length, config.d_model, generator),
      att_(attention::make_attention(config.attention, attention_options(config), generator)),
      head_(config.d_model, vocab_size, true, generator) {}

Tensor AttentionLanguageModel::forward(const Tensor& tokens) const {
  check_tokens(tokens);
  const Tensor positions = arange(tokens.size(1));          // [T]
  const Tensor x = tok_emb_(tokens) + pos_emb_(positions);  // [B, T, d]
  return head_((*att_)(x));                                 // [B, T, V]
}

void AttentionLanguageModel::visit(nn::Visitor& visitor) {
  visitor.child("tok_emb", tok_emb_);
  visitor.child("pos_emb", pos_emb_);
  visitor.child("att", *att_);
  visitor.child("head", head_);
}

std::unique_ptr<LanguageModel> make_language_model(const ModelConfig& config, int64_t vocab_size, Generator& generator) {
  if (config.kind == "gpt") return std::make_unique<Gpt>(config, vocab_size, generator);
  check<ConfigError>(config.kind == "attention", "model.kind: ", config.kind, " is not a model (known: attention, gpt)");
  return std::make_unique<AttentionLanguageModel>(config, vocab_size, generator);
}

}  // namespace onestep::train
