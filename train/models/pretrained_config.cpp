#include "train/models/pretrained_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/json_object.h"
#include "base/json_reader.h"
#include "train/config/config_fields.h"
#include "train/models/decoder.h"

namespace onestep::train {
namespace {

using nlohmann::json;

// transformers' names of activations, and ours.
constexpr std::array<std::pair<std::string_view, Activation>, 6> kActivations{{{"gelu_new", Activation::gelu_tanh},
                                                                               {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                               {"gelu", Activation::gelu},
                                                                               {"relu", Activation::relu},
                                                                               {"silu", Activation::silu},
                                                                               {"swish", Activation::silu}}};

/// As a stream shows it: 1 and not 1.0.
std::string shown(double value) { return (std::ostringstream() << value).str(); }

/// The values of an object of config.json.
class Values : public JsonObject {
 public:
  explicit Values(const JsonObject& object) : JsonObject(object) {}

  /// A count from 1 to that of our own key `field`; `otherwise` where it is absent or null, unless that is 0.
  int64_t count(const char* key, const char* field, int64_t otherwise = 0) const {
    const json* value = find(key);
    if (value == nullptr && otherwise > 0) return otherwise;
    const auto largest = static_cast<int64_t>(find_field(field)->high);
    const bool in_range = value != nullptr && value->is_number_integer() && *value >= 1 && *value <= largest;
    if (!in_range) refuse(key, "a whole number from 1 to " + std::to_string(largest));
    return value->get<int64_t>();
  }
  double number(const char* key, double otherwise, double least, double largest) const {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    const bool in_range = value->is_number() && *value >= least && value->get<double>() <= largest;
    if (!in_range) refuse(key, "a number from " + shown(least) + " to " + shown(largest));
    return value->get<double>();
  }
  /// Throws unless the flag has the only value that our model knows.
  void require(const char* key, bool wanted) const {
    ONESTEP_CHECK(IoError, flag(key, wanted) == wanted, place(), "/", key, ": only ", wanted ? "true" : "false",
                  " is supported");
  }
  template <NamedEnum E>
  E one_of(const char* key, const json* value, std::string_view known) const {
    const auto found = value != nullptr && value->is_string() ? value_named<E>(value->get<std::string>()) : std::nullopt;
    if (!found) refuse(key, std::string(known));
    return *found;
  }
};

// ---- GPT-2

Activation read_activation(const Values& config) {
  const json* value = config.find("activation_function");
  if (value == nullptr) return Activation::gelu_tanh;
  const auto* const known =
      std::find_if(kActivations.begin(), kActivations.end(), [&](const auto& a) { return *value == a.first; });
  if (known == kActivations.end()) config.refuse("activation_function", "gelu_new, gelu, relu or silu");
  return known->second;
}

ModelConfig read_gpt2(const Values& config) {
  config.require("scale_attn_weights", true);
  config.require("scale_attn_by_inverse_layer_idx", false);
  config.require("add_cross_attention", false);
  ModelConfig model;
  model.vocab_size = config.count("vocab_size", "model.vocab_size");
  model.context_length = config.count("n_positions", "model.context_length");
  model.d_model = config.count("n_embd", "model.d_model");
  model.num_layers = config.count("n_layer", "model.num_layers");
  model.num_heads = config.count("n_head", "model.num_heads");
  if (model.d_model % model.num_heads != 0) config.refuse("n_head", "a divisor of n_embd = " + std::to_string(model.d_model));
  model.num_kv_heads = model.num_heads;
  model.d_ff = config.count("n_inner", "model.d_ff", 4 * model.d_model);
  model.activation = read_activation(config);
  model.norm_eps = config.number("layer_norm_epsilon", 1e-5, 0, 1);
  model.tie_weights = config.flag("tie_word_embeddings", true);
  model.dropout = config.number("resid_pdrop", 0.1, 0, 1);
  for (const char* key : {"embd_pdrop", "attn_pdrop"})
    if (config.number(key, 0.1, 0, 1) != model.dropout)
      config.refuse(key, "resid_pdrop = " + shown(model.dropout) + ", the one dropout there is");
  return model;
}

json gpt2_json(const ModelConfig& model) {
  const auto* const activation =
      std::find_if(kActivations.begin(), kActivations.end(), [&](const auto& a) { return a.second == model.activation; });
  return {{"n_positions", model.context_length},
          {"n_embd", model.d_model},
          {"n_layer", model.num_layers},
          {"n_head", model.num_heads},
          {"n_inner", model.d_ff == 4 * model.d_model ? json() : json(model.d_ff)},
          {"activation_function", activation->first},
          {"layer_norm_epsilon", model.norm_eps},
          {"resid_pdrop", model.dropout},
          {"embd_pdrop", model.dropout},
          {"attn_pdrop", model.dropout},
          {"scale_attn_weights", true}};
}

// ---- Llama and what followed it

// What transformers takes where a config.json does not say it.
constexpr int64_t kUsualWindow = 4096, kHeadDimOfQwen3 = 128;

int64_t usual_kv_heads(Family family, int64_t num_heads) {
  return family == Family::llama ? num_heads : family == Family::mistral ? 8 : 32;
}

void read_rope_scaling(const Values& rope, ModelConfig& model) {
  const char* const key = rope.has("rope_type") ? "rope_type" : "type";
  const json* type = rope.find(key);
  if (type == nullptr || *type == "default") return;
  model.rope_scaling = rope.one_of<RotaryScaling::Kind>(key, type, "default, linear or llama3");
  if (model.rope_scaling == RotaryScaling::Kind::none) return;
  const auto number = [&](const char* name, const char* field) {
    if (!rope.has(name)) rope.refuse(name, "a number");
    return rope.number(name, 1, find_field(field)->low, find_field(field)->high);
  };
  model.rope_factor = number("factor", "model.rope_factor");
  if (model.rope_scaling != RotaryScaling::Kind::llama3) return;
  model.rope_low_freq_factor = number("low_freq_factor", "model.rope_low_freq_factor");
  model.rope_high_freq_factor = number("high_freq_factor", "model.rope_high_freq_factor");
  if (model.rope_low_freq_factor >= model.rope_high_freq_factor) rope.refuse("high_freq_factor", "above low_freq_factor");
  model.rope_original_context = rope.count("original_max_position_embeddings", "model.rope_original_context");
}

/// rope_theta and rope_scaling, or, since transformers 5, rope_parameters with both.
void read_rope(const Values& config, ModelConfig& model) {
  model.rope = true;
  const Field& theta = *find_field("model.rope_theta");
  model.rope_theta = config.number("rope_theta", 10000, theta.low, theta.high);
  config.number("partial_rotary_factor", 1, 1, 1);
  if (config.has("rope_scaling")) read_rope_scaling(Values(config.object("rope_scaling")), model);
  if (!config.has("rope_parameters")) return;
  const Values rope(config.object("rope_parameters"));
  model.rope_theta = rope.number("rope_theta", model.rope_theta, theta.low, theta.high);
  rope.number("partial_rotary_factor", 1, 1, 1);
  read_rope_scaling(rope, model);
}

/// How many of the layers attend to all tokens before them where others have a window.
int64_t full_layers(const Values& config, Family family, int64_t layers) {
  const json* types = config.find("layer_types");
  if (types == nullptr)
    return family == Family::mistral ? 0 : static_cast<int64_t>(config.number("max_window_layers", 28, 0, 1000));
  const auto of_type = [&](const char* type) { return std::count(types->begin(), types->end(), json(type)); };
  const int64_t full = of_type("full_attention");
  if (!types->is_array() || static_cast<int64_t>(types->size()) != layers || full + of_type("sliding_attention") != layers)
    config.refuse("layer_types", "full_attention or sliding_attention for each of " + std::to_string(layers) + " layers");
  return full;
}

/// The window that all layers have, or 0.
int64_t read_window(const Values& config, Family family, int64_t layers) {
  if (family == Family::llama || (family != Family::mistral && !config.flag("use_sliding_window", false))) return 0;
  if (config.value().contains("sliding_window") && !config.has("sliding_window")) return 0;
  const int64_t window = config.count("sliding_window", "model.window", kUsualWindow);
  const int64_t full = full_layers(config, family, layers);
  if (full >= layers) return 0;
  if (full > 0)
    config.refuse(config.has("layer_types") ? "layer_types" : "max_window_layers",
                  "such that all layers have the window or none");
  return window;
}

void read_biases(const Values& config, Family family, ModelConfig& model) {
  model.bias = false;
  model.mlp_bias = model.attention_bias = Biases::none;
  if (family == Family::qwen2) model.attention_bias = Biases::qkv;
  if ((family == Family::llama || family == Family::qwen3) && config.flag("attention_bias", false))
    model.attention_bias = Biases::all;
  if (family == Family::llama && config.flag("mlp_bias", false)) model.mlp_bias = Biases::all;
}

ModelConfig read_llama(const Values& config, Family family) {
  ModelConfig model;
  model.vocab_size = config.count("vocab_size", "model.vocab_size");
  model.context_length = config.count("max_position_embeddings", "model.context_length");
  model.d_model = config.count("hidden_size", "model.d_model");
  model.num_layers = config.count("num_hidden_layers", "model.num_layers");
  model.num_heads = config.count("num_attention_heads", "model.num_heads");
  model.num_kv_heads = config.count("num_key_value_heads", "model.num_kv_heads", usual_kv_heads(family, model.num_heads));
  if (model.num_heads % model.num_kv_heads != 0)
    config.refuse("num_key_value_heads", "a divisor of num_attention_heads = " + std::to_string(model.num_heads));
  const bool usual = family == Family::qwen3 && !config.value().contains("head_dim");
  model.head_dim = config.count("head_dim", "model.head_dim",
                                usual ? kHeadDimOfQwen3 : std::max<int64_t>(model.d_model / model.num_heads, 1));
  if (model.head_dim % 2 != 0) config.refuse("head_dim", "an even number, as the rotation of queries and keys needs it");
  model.d_ff = config.count("intermediate_size", "model.d_ff");
  model.activation = Activation::swiglu;
  if (const json* activation = config.find("hidden_act");
      activation != nullptr && *activation != "silu" && *activation != "swish")
    config.refuse("hidden_act", "silu");
  model.norm = NormKind::rms_norm;
  model.norm_eps = config.number("rms_norm_eps", 1e-6, 0, 1);
  model.tie_weights = config.flag("tie_word_embeddings", false);
  model.qk_norm = family == Family::qwen3;
  config.number("attention_dropout", 0, 0, 0);
  read_biases(config, family, model);
  read_rope(config, model);
  model.window = read_window(config, family, model.num_layers);
  return model;
}

json rope_scaling_json(const ModelConfig& m) {
  if (m.rope_scaling == RotaryScaling::Kind::none) return {};
  json scaling{{"rope_type", name_of(m.rope_scaling)}, {"factor", m.rope_factor}};
  if (m.rope_scaling == RotaryScaling::Kind::llama3)
    scaling.update({{"low_freq_factor", m.rope_low_freq_factor},
                    {"high_freq_factor", m.rope_high_freq_factor},
                    {"original_max_position_embeddings", m.rope_original_context}});
  return scaling;
}

json llama_json(const ModelConfig& model, Family family) {
  const ModelConfig m = written_out(model);
  json config{{"max_position_embeddings", m.context_length},
              {"hidden_size", m.d_model},
              {"intermediate_size", m.d_ff},
              {"num_hidden_layers", m.num_layers},
              {"num_attention_heads", m.num_heads},
              {"num_key_value_heads", m.num_kv_heads},
              {"head_dim", m.head_dim},
              {"hidden_act", "silu"},
              {"rms_norm_eps", m.norm_eps},
              {"rope_theta", m.rope_theta},
              {"rope_scaling", rope_scaling_json(m)},
              {"attention_dropout", 0.0},
              {"bos_token_id", nullptr}};
  if (family == Family::llama || family == Family::qwen3) config["attention_bias"] = m.attention_bias == Biases::all;
  if (family == Family::llama) config["mlp_bias"] = m.mlp_bias == Biases::all;
  if (family != Family::llama) config["sliding_window"] = m.window > 0 ? json(m.window) : json();
  if (family == Family::qwen2 || family == Family::qwen3) {
    config["use_sliding_window"] = m.window > 0;
    config["max_window_layers"] = m.window > 0 ? 0 : m.num_layers;
  }
  return config;
}

/// Throws ConfigError unless a gpt without rope is a GPT-2.
void check_gpt2(const ModelConfig& m) {
  const auto check = [](bool has, const char* key, const auto& value) {
    ONESTEP_CHECK(ConfigError, has, "export: model.", key, " is ", value, ", which GPT-2 does not have");
  };
  check(std::any_of(kActivations.begin(), kActivations.end(), [&](const auto& a) { return a.second == m.activation; }),
        "activation", name_of(m.activation));
  check(m.norm == NormKind::layer_norm, "norm", name_of(m.norm));
  check(m.window == 0, "window", m.window);
  check(m.num_kv_heads == m.num_heads, "num_kv_heads", m.num_kv_heads);
  check(m.num_heads * m.head_dim == m.d_model, "head_dim", m.head_dim);
  check(!m.qk_norm, "qk_norm", "true");
}

/// Whether the family has just what the gpt with rope has.
bool fits(Family family, const ModelConfig& m) {
  const bool llama = family == Family::llama, qwen2 = family == Family::qwen2, qwen3 = family == Family::qwen3;
  const bool biases = m.attention_bias == Biases::qkv ? qwen2 : m.attention_bias == Biases::all ? llama || qwen3 : !qwen2;
  return biases && m.qk_norm == qwen3 && (m.mlp_bias == Biases::none || llama) && (m.window == 0 || !llama);
}

/// The tokens that end a text; those that the model does not have are left out: no text comes to them.
std::vector<int64_t> read_eos(const Values& config, int64_t vocab_size) {
  const json* value = config.find("eos_token_id");
  if (value == nullptr) return {};
  std::vector<int64_t> ids;
  for (const json& id : value->is_array() ? *value : json::array({*value})) {
    if (!id.is_number_integer()) config.refuse("eos_token_id", "a whole number or a list of them");
    if (id >= 0 && id < vocab_size) ids.push_back(id.get<int64_t>());
  }
  return ids;
}

json eos_json(const std::vector<int64_t>& ids) { return ids.empty() ? json() : ids.size() == 1 ? json(ids[0]) : json(ids); }

}  // namespace

ModelConfig read_pretrained_config(const std::string& path) {
  const json file = read_json<IoError>(path, kMaxJsonBytes);
  const Values config(JsonObject(file, path + ": "));
  const auto family = config.one_of<Family>("model_type", config.find("model_type"), "gpt2, llama, mistral, qwen2 or qwen3");
  if (config.has("quantization_config"))
    config.refuse("quantization_config", "absent: weights are read in float32, bfloat16 and float16");
  ModelConfig model = family == Family::gpt2 ? read_gpt2(config) : read_llama(config, family);
  model.kind = ModelKind::gpt;
  model.eos_token_ids = read_eos(config, model.vocab_size);
  const std::filesystem::path generation = std::filesystem::path(path).parent_path() / "generation_config.json";
  if (!std::filesystem::exists(generation)) return model;
  const json said = read_json<IoError>(generation.string(), kMaxJsonBytes);
  const Values how(JsonObject(said, generation.string() + ": "));
  if (how.has("eos_token_id")) model.eos_token_ids = read_eos(how, model.vocab_size);
  return model;
}

Family family_of(const ModelConfig& model) {
  const ModelConfig m = written_out(model);
  ONESTEP_CHECK(ConfigError, m.kind == ModelKind::gpt, "export: model.kind is ", name_of(m.kind), ": only gpt can be exported");
  if (!m.rope) {
    check_gpt2(m);
    return Family::gpt2;
  }
  ONESTEP_CHECK(ConfigError, m.activation == Activation::swiglu, "export: model.activation is ", name_of(m.activation),
                ": with model.rope it must be swiglu");
  ONESTEP_CHECK(ConfigError, m.norm == NormKind::rms_norm, "export: model.norm is ", name_of(m.norm),
                ": with model.rope it must be rms_norm");
  for (const Family family : {Family::llama, Family::mistral, Family::qwen2, Family::qwen3})
    if (fits(family, m)) return family;
  fail<ConfigError>("export: no family has model.attention_bias = ", name_of(m.attention_bias),
                    ", model.mlp_bias = ", name_of(m.mlp_bias), ", model.qk_norm = ", m.qk_norm ? "true" : "false",
                    " and model.window = ", m.window,
                    " together (a bias of the feed-forward layers is Llama's alone, which has no window)");
}

std::string pretrained_config_json(const ModelConfig& model, DType dtype) {
  const Family family = family_of(model);
  constexpr std::array kArchitectures{"GPT2LMHeadModel", "LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM",
                                      "Qwen3ForCausalLM"};
  json config = family == Family::gpt2 ? gpt2_json(model) : llama_json(model, family);
  config["model_type"] = name_of(family);
  config["architectures"] = {kArchitectures[static_cast<size_t>(family)]};
  config["eos_token_id"] = eos_json(model.eos_token_ids);
  config["vocab_size"] = model.vocab_size;
  config["tie_word_embeddings"] = model.tie_weights;
  config["dtype"] = (std::ostringstream() << dtype).str();
  return config.dump(2) + "\n";
}

}  // namespace onestep::train
