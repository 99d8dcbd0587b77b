#include "train/models/gpt.h"

#include <cmath>

#include "autograd/checkpoint.h"
#include "autograd/creation.h"
#include "autograd/operators.h"
#include "nn/activation.h"
#include "nn/feed_forward.h"
#include "nn/init.h"
#include "nn/layer_norm.h"
#include "nn/rms_norm.h"
#include "train/models/decoder.h"

namespace onestep::train {
namespace {

std::unique_ptr<nn::Layer> make_norm(const ModelConfig& config) {
  if (config.norm == NormKind::rms_norm) return std::make_unique<nn::RMSNorm>(config.d_model, config.norm_eps);
  return std::make_unique<nn::LayerNorm>(config.d_model, config.norm_eps, /*elementwise_affine=*/true, config.bias);
}

bool has_mlp_bias(const ModelConfig& config) { return written_out(config).mlp_bias == Biases::all; }

std::unique_ptr<nn::Layer> make_mlp(const ModelConfig& config, Generator& generator) {
  if (config.activation == Activation::swiglu)
    return std::make_unique<nn::SwiGLU>(config.d_model, config.d_ff, has_mlp_bias(config), generator);
  return std::make_unique<Mlp>(config, generator);
}

attention::Options block_attention_options(const ModelConfig& model) {
  const ModelConfig config = written_out(model);
  attention::Options a = attention_options(config);
  a.qkv_bias = config.attention_bias != Biases::none;
  a.out_bias = config.attention_bias == Biases::all;
  a.head_dim = model.head_dim;
  a.qk_norm = config.qk_norm;
  a.norm_eps = config.norm_eps;
  a.rope_scaling = rotary_scaling(config);
  return a;
}

const ModelConfig& checked(const ModelConfig& config) {
  ONESTEP_CHECK(ConfigError, config.kind == ModelKind::gpt && config.num_layers > 0 && config.d_ff > 0,
                "gpt: needs a config of kind gpt with num_layers and d_ff: got kind ", name_of(config.kind), ", num_layers ",
                config.num_layers, ", d_ff ", config.d_ff, " (resolve() completes one)");
  return config;
}

/// Whether the result of this Linear is added to the residual stream.
bool is_residual_projection(const std::string& parameter) {
  return parameter.ends_with("c_proj.weight") || parameter.ends_with("down_proj.weight");
}

/// make(), passing over its draws: the values are drawn again afterwards.
template <class F>
auto drawn_anew(F make) {
  const nn::init::SkipInit skip;
  return make();
}

}  // namespace

Mlp::Mlp(const ModelConfig& config, Generator& generator)
    : c_fc(config.d_model, config.d_ff, has_mlp_bias(config), generator),
      act(nn::make_activation(name_of(config.activation))),
      c_proj(config.d_ff, config.d_model, has_mlp_bias(config), generator) {}

void Mlp::visit(nn::Visitor& visitor) {
  visitor.child("c_fc", c_fc);
  visitor.child("act", *act);
  visitor.child("c_proj", c_proj);
}

GptBlock::GptBlock(const ModelConfig& config, Generator& generator)
    : ln_1(make_norm(config)),
      attn(block_attention_options(config), generator),
      ln_2(make_norm(config)),
      mlp(make_mlp(config, generator)),
      dropout(config.dropout, generator) {}

Tensor GptBlock::forward(const Tensor& x) const { return with_attended(x, attn((*ln_1)(x))); }

Tensor GptBlock::forward_apart(const Tensor& x, const std::vector<int64_t>& lengths) const {
  return with_attended(x, attn.forward_apart((*ln_1)(x), lengths));
}

Tensor GptBlock::forward_cached(const Tensor& x, std::span<attention::KvCache* const> caches) const {
  return with_attended(x, attn.forward_cached((*ln_1)(x), caches));
}

Tensor GptBlock::with_attended(const Tensor& x, const Tensor& attended) const {
  const Tensor y = x + dropout(attended);  // [B, T, d_model]
  return y + dropout((*mlp)((*ln_2)(y)));  // [B, T, d_model]
}

void GptBlock::visit(nn::Visitor& visitor) {
  visitor.child("ln_1", *ln_1);
  visitor.child("attn", attn);
  visitor.child("ln_2", *ln_2);
  visitor.child("mlp", *mlp);
  visitor.child("dropout", dropout);
}

Transformer::Transformer(const ModelConfig& config, int64_t vocab_size, Generator& generator)
    : wte(vocab_size, config.d_model, generator), drop(config.dropout, generator) {
  if (!config.rope) wpe.emplace(config.context_length, config.d_model, generator);
  for (int64_t i = 0; i < config.num_layers; ++i) h.emplace_back(config, generator);
  ln_f = make_norm(config);
}

/// The norm of what the blocks make of x: [B, T, d_model]. `apply` is kept for the backward pass where blocks are recomputed.
template <class Apply>
Tensor Transformer::through_blocks(Tensor x, const Apply& apply) const {
  for (const GptBlock& block : h) {  // [B, T, d_model]
    const auto run = [&block, apply](const Tensor& in) { return apply(block, in); };
    x = recompute ? autograd::checkpoint(run, x, block.dropout.generator()) : run(x);
  }
  return (*ln_f)(x);  // [B, T, d_model]
}

Tensor Transformer::forward(const Tensor& tokens) const {
  return through_blocks(embedded(tokens, arange(tokens.size(-1))),
                        [](const GptBlock& block, const Tensor& x) { return block(x); });
}

Tensor Transformer::forward_apart(const Tensor& tokens, const std::vector<int64_t>& lengths) const {
  std::vector<int64_t> positions;  // 0 .. length - 1 of each
  for (const int64_t length : lengths)
    for (int64_t i = 0; i < length; ++i) positions.push_back(i);
  ONESTEP_CHECK(ShapeError, std::ssize(positions) == tokens.numel(), "gpt: sequences of ", positions.size(),
                " tokens in tokens of shape ", tokens.shape());
  return through_blocks(embedded(tokens, from_values(positions, tokens.shape())),
                        [lengths](const GptBlock& block, const Tensor& x) { return block.forward_apart(x, lengths); });
}

Tensor Transformer::forward_cached(const Tensor& tokens, const Tensor& positions, std::span<ModelCache* const> caches) const {
  Tensor x = embedded(tokens, positions);                                                      // [B, n, d_model]
  for (int64_t i = 0; i < h.size(); ++i) x = h[i].forward_cached(x, layer_caches(caches, i));  // [B, n, d_model]
  return (*ln_f)(x);                                                                           // [B, n, d_model]
}

Tensor Transformer::embedded(const Tensor& tokens, const Tensor& positions) const {
  const Tensor x = wte(tokens);
  return drop(wpe ? x + (*wpe)(positions) : x);
}

void Transformer::visit(nn::Visitor& visitor) {
  visitor.child("wte", wte);
  if (wpe) visitor.child("wpe", *wpe);
  visitor.child("drop", drop);
  visitor.child("h", h);
  visitor.child("ln_f", *ln_f);
}

Gpt::Gpt(const ModelConfig& config, int64_t vocab_size, Generator& generator, int64_t num_classes)
    : LanguageModel(vocab_size, config.context_length, num_classes),
      transformer(drawn_anew([&] { return Transformer(checked(config), vocab_size, generator); })),
      lm_head(drawn_anew(
          [&] { return nn::Linear(config.d_model, num_classes > 0 ? num_classes : vocab_size, /*bias=*/false, generator); })),
      tied_(config.tie_weights && num_classes == 0) {
  if (tied_) transformer.wte.weight = lm_head.weight;
  draw_weights(config.num_layers, generator);
}

void Gpt::draw_weights(int64_t num_layers, Generator& generator) {
  constexpr double kStd = 0.02;
  const nn::NamedTensors parameters = named_parameters();
  for (auto [name, parameter] : parameters) {
    const auto draw = [&, &weight = parameter] { nn::init::normal_(weight, 0.0, kStd, generator); };
    const bool again = is_residual_projection(name) || (tied_ && name == "transformer.wte.weight");
    if (parameter.dim() == 2) again ? drawn_anew(draw) : draw();
    if (name.ends_with(".bias")) nn::init::zeros_(parameter);
  }
  if (tied_) nn::init::normal_(lm_head.weight, 0.0, kStd, generator);  // drawn as wte and once more as the head
  const double residual_std = kStd / std::sqrt(2.0 * static_cast<double>(num_layers));
  for (auto [name, parameter] : parameters)
    if (is_residual_projection(name)) nn::init::normal_(parameter, 0.0, residual_std, generator);
}

Tensor Gpt::forward(const Tensor& tokens) const {
  check_tokens(tokens);
  return lm_head(transformer(tokens));  // [B, T, V]
}

Tensor Gpt::forward_apart(const Tensor& tokens, const std::vector<int64_t>& lengths) const {
  check_tokens(tokens);
  return lm_head(transformer.forward_apart(tokens, lengths));  // [B, T, V]
}

Tensor Gpt::next_logits(const Tensor& tokens, std::span<ModelCache* const> caches) const {
  const NoGradGuard no_grad;
  const Tensor positions = start_reading(tokens, caches, transformer.h.size());
  return lm_head(transformer.forward_cached(tokens, positions, caches).select(1, -1));  // [B, V]
}

void Gpt::visit(nn::Visitor& visitor) {
  visitor.child("transformer", transformer);
  tied_ ? visitor.tied(lm_head) : visitor.child(num_classes() > 0 ? kClassHead : "lm_head", lm_head);
}

}  // namespace onestep::train
