#include "train/models/decoder.h"

#include <algorithm>

namespace onestep::train {
namespace {

/// Collects the parameters of modules.
class Parameters {
 public:
  void tensor(const std::string& module, const char* field, const Shape& shape, bool linear = false) {
    list.push_back({module, block, field, shape, linear});
  }
  void linear(const std::string& module, int64_t in, int64_t out, bool bias) {
    tensor(module, "weight", {out, in}, true);
    if (bias) tensor(module, "bias", {out});
  }
  void norm(const std::string& module, int64_t features, bool bias) {
    tensor(module, "weight", {features});
    if (bias) tensor(module, "bias", {features});
  }

  int64_t block = -1;
  std::vector<DecoderParameter> list;
};

void add_block(Parameters& parameters, const ModelConfig& m) {
  const std::string block = "transformer.h.#.";
  const int64_t d = m.d_model;
  const bool norm_bias = m.norm == NormKind::layer_norm && m.bias, mlp_bias = m.mlp_bias == Biases::all;
  parameters.norm(block + "ln_1", d, norm_bias);
  parameters.linear(block + "attn.c_attn", d, query_width(m) + 2 * key_width(m), m.attention_bias != Biases::none);
  parameters.linear(block + "attn.c_proj", query_width(m), d, m.attention_bias == Biases::all);
  for (const char* const norm : {"attn.q_norm", "attn.k_norm"})
    if (m.qk_norm) parameters.norm(block + norm, m.head_dim, false);
  parameters.norm(block + "ln_2", d, norm_bias);
  const bool gated = m.activation == Activation::swiglu;
  if (gated) parameters.linear(block + "mlp.gate_proj", d, m.d_ff, mlp_bias);
  parameters.linear(block + (gated ? "mlp.up_proj" : "mlp.c_fc"), d, m.d_ff, mlp_bias);
  parameters.linear(block + (gated ? "mlp.down_proj" : "mlp.c_proj"), m.d_ff, d, mlp_bias);
}

/// Those of one attention layer of the chapter.
void add_attention(Parameters& parameters, const ModelConfig& m) {
  const int64_t d = m.d_model, heads = m.num_heads;
  const auto projections = [&](const std::string& prefix, int64_t out) {
    for (const char* const name : {"W_query", "W_key", "W_value"}) parameters.linear(prefix + name, d, out, m.qkv_bias);
  };
  if (m.attention == AttentionKind::self_v1)
    for (const char* const name : {"W_query", "W_key", "W_value"}) parameters.tensor("att", name, {d, d});
  if (m.attention == AttentionKind::self_v2 || m.attention == AttentionKind::causal || m.attention == AttentionKind::multi_head)
    projections("att.", d);
  if (m.attention == AttentionKind::multi_head) parameters.linear("att.out_proj", d, d, true);
  if (m.attention == AttentionKind::multi_head_wrapper)
    for (int64_t i = 0; i < heads; ++i) projections("att.heads." + std::to_string(i) + '.', d / heads);
  if (m.attention == AttentionKind::einsum) {
    constexpr const char* kNames[][2] = {{"W_query", "b_query"}, {"W_key", "b_key"}, {"W_value", "b_value"}};
    for (const auto& [weight, bias] : kNames) {
      parameters.tensor("att", weight, {heads, d / heads, d});
      if (m.qkv_bias) parameters.tensor("att", bias, {heads, 1, d / heads});
    }
    parameters.tensor("att", "W_out", {d, heads, d / heads});
    parameters.tensor("att", "b_out", {d});
  }
  if (m.attention != AttentionKind::fused_qkv) return;
  const ModelConfig w = written_out(m);
  parameters.linear("att.c_attn", d, query_width(w) + 2 * key_width(w), m.qkv_bias);
  parameters.linear("att.c_proj", d, d, true);
}

}  // namespace

ModelConfig written_out(ModelConfig m) {
  const Biases usual = m.bias ? Biases::all : Biases::none;
  if (m.num_kv_heads == 0) m.num_kv_heads = m.num_heads;
  if (m.head_dim == 0) m.head_dim = m.d_model / std::max<int64_t>(m.num_heads, 1);
  if (m.attention_bias == Biases::automatic) m.attention_bias = usual;
  if (m.mlp_bias == Biases::automatic) m.mlp_bias = usual;
  return m;
}

std::string numbered(std::string_view pattern, int64_t block) {
  std::string text(pattern);
  if (const size_t place = text.find('#'); place != std::string::npos) text.replace(place, 1, std::to_string(block));
  return text;
}

std::string DecoderParameter::name() const { return numbered(module, block) + '.' + field; }

std::vector<DecoderParameter> decoder_parameters(const ModelConfig& model, int64_t vocab_size, int64_t num_classes) {
  const ModelConfig m = written_out(model);
  Parameters parameters;
  parameters.tensor("transformer.wte", "weight", {vocab_size, m.d_model});
  if (!m.rope) parameters.tensor("transformer.wpe", "weight", {m.context_length, m.d_model});
  for (parameters.block = 0; parameters.block < m.num_layers; ++parameters.block) add_block(parameters, m);
  parameters.block = -1;
  parameters.norm("transformer.ln_f", m.d_model, m.norm == NormKind::layer_norm && m.bias);
  if (num_classes > 0)
    parameters.tensor(kClassHead, "weight", {num_classes, m.d_model});
  else if (!m.tie_weights)
    parameters.linear("lm_head", m.d_model, vocab_size, false);
  return std::move(parameters.list);
}

std::vector<DecoderParameter> base_parameters(const ModelConfig& m, int64_t vocab_size, int64_t num_classes) {
  if (m.kind == ModelKind::gpt) return decoder_parameters(m, vocab_size, num_classes);
  Parameters parameters;
  parameters.tensor("tok_emb", "weight", {vocab_size, m.d_model});
  parameters.tensor("pos_emb", "weight", {m.context_length, m.d_model});
  add_attention(parameters, m);
  parameters.linear("head", m.d_model, vocab_size, true);
  return std::move(parameters.list);
}

}  // namespace onestep::train
