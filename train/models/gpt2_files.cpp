#include "train/models/gpt2_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "autograd/creation.h"
#include "autograd/ops_conv.h"
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor.h"
#include "base/json_reader.h"
#include "base/new_files.h"
#include "train/checkpoint/safetensors.h"
#include "train/config/config_fields.h"
#include "train/text/bpe_files.h"

namespace onestep::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kConfig = "config.json";
constexpr const char* kModel = "model.safetensors";
constexpr std::string_view kPrefix = "transformer.";

// transformers' names of activations, and ours.
constexpr std::array<std::pair<std::string_view, Activation>, 6> kActivations{{{"gelu_new", Activation::gelu_tanh},
                                                                               {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                               {"gelu", Activation::gelu},
                                                                               {"relu", Activation::relu},
                                                                               {"silu", Activation::silu},
                                                                               {"swish", Activation::silu}}};

// ---- config.json

/// The values of config.json; each is checked when it is asked for.
class Gpt2Config {
 public:
  explicit Gpt2Config(const std::string& path) : path_(path), values_(read_json<IoError>(path, kMaxJsonBytes)) {
    ONESTEP_CHECK(IoError, values_.is_object(), path_, ": must be an object: got ", brief(values_));
    const json* type = find("model_type");
    ONESTEP_CHECK(IoError, type != nullptr && *type == "gpt2", path_, ": /model_type: must be \"gpt2\": got ",
                  type == nullptr ? "nothing" : brief(*type));
  }

  /// A count from 1 to that of our own key `field`; `otherwise` where it is absent or null, unless that is 0.
  int64_t count(const char* key, const char* field, int64_t otherwise = 0) const {
    const json* value = find(key);
    if (value == nullptr && otherwise > 0) return otherwise;
    const auto largest = static_cast<int64_t>(find_field(field)->high);
    const bool in_range = value != nullptr && value->is_number_integer() && *value >= 1 && *value <= largest;
    ONESTEP_CHECK(IoError, in_range, path_, ": /", key, ": must be a whole number from 1 to ", largest, ": got ",
                  value == nullptr ? "nothing" : brief(*value));
    return value->get<int64_t>();
  }
  double number(const char* key, double otherwise, double largest) const {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    const bool in_range = value->is_number() && *value >= 0 && value->get<double>() <= largest;
    ONESTEP_CHECK(IoError, in_range, path_, ": /", key, ": must be a number from 0 to ", largest, ": got ", brief(*value));
    return value->get<double>();
  }
  bool flag(const char* key, bool otherwise) const {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    ONESTEP_CHECK(IoError, value->is_boolean(), path_, ": /", key, ": must be true or false: got ", brief(*value));
    return value->get<bool>();
  }
  /// Throws unless the flag has the only value that our model knows.
  void require(const char* key, bool wanted) const {
    ONESTEP_CHECK(IoError, flag(key, wanted) == wanted, path_, ": /", key, ": only ", wanted ? "true" : "false",
                  " is supported");
  }
  Activation activation() const {
    const json* value = find("activation_function");
    if (value == nullptr) return Activation::gelu_tanh;
    const auto* const known =
        std::find_if(kActivations.begin(), kActivations.end(), [&](const auto& a) { return *value == a.first; });
    ONESTEP_CHECK(IoError, known != kActivations.end(), path_,
                  ": /activation_function: must be gelu_new, gelu, relu or silu: got ", brief(*value));
    return known->second;
  }

 private:
  const json* find(const char* key) const {
    const auto found = values_.find(key);
    return found == values_.end() || found->is_null() ? nullptr : &*found;
  }

  std::string path_;
  json values_;
};

ModelConfig read_config(const std::string& path) {
  const Gpt2Config config(path);
  config.require("scale_attn_weights", true);
  config.require("scale_attn_by_inverse_layer_idx", false);
  config.require("add_cross_attention", false);
  ModelConfig model;
  model.kind = ModelKind::gpt;
  model.vocab_size = config.count("vocab_size", "model.vocab_size");
  model.context_length = config.count("n_positions", "model.context_length");
  model.d_model = config.count("n_embd", "model.d_model");
  model.num_layers = config.count("n_layer", "model.num_layers");
  model.num_heads = config.count("n_head", "model.num_heads");
  ONESTEP_CHECK(IoError, model.d_model % model.num_heads == 0, path, ": /n_head: must divide n_embd = ", model.d_model,
                ": got ", model.num_heads);
  model.num_kv_heads = model.num_heads;
  model.d_ff = config.count("n_inner", "model.d_ff", 4 * model.d_model);
  model.activation = config.activation();
  model.norm_eps = config.number("layer_norm_epsilon", 1e-5, 1);
  model.tie_weights = config.flag("tie_word_embeddings", true);
  model.dropout = config.number("resid_pdrop", 0.1, 1);
  for (const char* key : {"embd_pdrop", "attn_pdrop"})
    ONESTEP_CHECK(IoError, config.number(key, 0.1, 1) == model.dropout, path, ": /", key,
                  ": must be resid_pdrop = ", model.dropout, ", the one dropout there is: got ", config.number(key, 0.1, 1));
  return model;
}

json write_config(const ModelConfig& model) {
  const auto* const activation =
      std::find_if(kActivations.begin(), kActivations.end(), [&](const auto& a) { return a.second == model.activation; });
  ONESTEP_CHECK(ConfigError, model.kind == ModelKind::gpt, "export: model.kind is ", name_of(model.kind),
                ": only gpt can be a GPT-2");
  ONESTEP_CHECK(ConfigError, activation != kActivations.end(), "export: model.activation is ", name_of(model.activation),
                ", which GPT-2 does not have");
  ONESTEP_CHECK(ConfigError,
                !model.rope && model.window == 0 && (model.num_kv_heads == 0 || model.num_kv_heads == model.num_heads),
                "export: model.rope, model.window or model.num_kv_heads asks for what GPT-2 does not have");
  ONESTEP_CHECK(ConfigError, model.norm == NormKind::layer_norm, "export: model.norm is ", name_of(model.norm),
                ", which GPT-2 does not have");
  return {{"model_type", "gpt2"},
          {"architectures", {"GPT2LMHeadModel"}},
          {"vocab_size", model.vocab_size},
          {"n_positions", model.context_length},
          {"n_embd", model.d_model},
          {"n_layer", model.num_layers},
          {"n_head", model.num_heads},
          {"n_inner", model.d_ff == 4 * model.d_model ? json() : json(model.d_ff)},
          {"activation_function", activation->first},
          {"layer_norm_epsilon", model.norm_eps},
          {"resid_pdrop", model.dropout},
          {"embd_pdrop", model.dropout},
          {"attn_pdrop", model.dropout},
          {"scale_attn_weights", true},
          {"tie_word_embeddings", model.tie_weights},
          {"dtype", "float32"}};
}

// ---- model.safetensors

struct Expected {
  std::string name;
  Shape shape;              ///< In the file.
  bool transposed = false;  ///< A Conv1D: [in, out] where our Linear has [out, in].
};

/// The tensors of a GPT2LMHeadModel under transformers' names, which are ours too.
std::vector<Expected> expected_tensors(const ModelConfig& m) {
  const int64_t d = m.d_model;
  std::vector<Expected> list{{"transformer.wte.weight", {m.vocab_size, d}}, {"transformer.wpe.weight", {m.context_length, d}}};
  const auto norm = [&](const std::string& name) {
    list.push_back({name + ".weight", {d}});
    list.push_back({name + ".bias", {d}});
  };
  const auto conv1d = [&](const std::string& name, int64_t in, int64_t out) {
    list.push_back({name + ".weight", {in, out}, true});
    list.push_back({name + ".bias", {out}});
  };
  for (int64_t i = 0; i < m.num_layers; ++i) {
    const std::string block = "transformer.h." + std::to_string(i);
    norm(block + ".ln_1");
    conv1d(block + ".attn.c_attn", d, 3 * d);
    conv1d(block + ".attn.c_proj", d, d);
    norm(block + ".ln_2");
    conv1d(block + ".mlp.c_fc", d, m.d_ff);
    conv1d(block + ".mlp.c_proj", m.d_ff, d);
  }
  norm("transformer.ln_f");
  if (!m.tie_weights) list.push_back({"lm_head.weight", {m.vocab_size, d}});
  return list;
}

/// Causal masks, which old versions saved with the weights.
bool is_mask(const std::string& name) { return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"); }

using TensorMap = std::map<std::string, Tensor>;

/// The file's tensors under the full names, without masks and without a tied head that repeats the embedding.
TensorMap read_tensors(const std::string& path, const ModelConfig& model, bool quiet) {
  const nn::NamedTensors tensors = read_safetensors(path, quiet).tensors;
  const bool prefixed =
      std::any_of(tensors.begin(), tensors.end(), [](const auto& named) { return named.first.starts_with(kPrefix); });
  TensorMap found;
  for (const auto& [name, tensor] : tensors) {
    if (is_mask(name)) continue;
    found[prefixed || name == "lm_head.weight" ? name : std::string(kPrefix) + name] = tensor;
  }
  const auto head = found.find("lm_head.weight"), embedding = found.find("transformer.wte.weight");
  if (model.tie_weights && head != found.end()) {
    ONESTEP_CHECK(IoError, embedding != found.end() && equal(head->second, embedding->second), path,
                  ": tensor \"lm_head.weight\": differs from wte.weight, to which config.json ties it");
    found.erase(head);
  }
  return found;
}

std::vector<int64_t> sizes(const Shape& shape) { return {shape.begin(), shape.end()}; }

Tensor take(TensorMap& tensors, const Expected& expected, const std::string& path) {
  const auto found = tensors.find(expected.name);
  const std::string place = path + ": tensor \"" + expected.name + "\": ";
  ONESTEP_CHECK(IoError, found != tensors.end(), place, "is missing");
  const Tensor tensor = found->second;
  ONESTEP_CHECK(IoError, tensor.dtype() == DType::float32, place, "must be float32: is ", tensor.dtype());
  ONESTEP_CHECK(IoError, tensor.shape() == expected.shape, place, "must be ", json(sizes(expected.shape)).dump(),
                " as config.json says: is ", json(sizes(tensor.shape())).dump());
  tensors.erase(found);
  return expected.transposed ? contiguous(transpose(tensor, 0, 1)) : tensor;
}

bool is_gpt2_config(const std::string& path) {
  try {
    const Gpt2Config config(path);
    return true;
  } catch (const IoError&) {
    return false;
  }
}

/// An export replaces an earlier one: not a run, nor the model of another program.
void check_replaces_gpt2(const fs::path& folder) {
  const bool has_config = fs::exists(folder / kConfig);
  if (!has_config && !fs::exists(folder / kModel)) return;
  ONESTEP_CHECK(IoError, has_config && is_gpt2_config((folder / kConfig).string()),
                (folder / (has_config ? kConfig : kModel)).string(),
                ": is not that of a GPT-2, and an export would replace it (name another folder)");
}

/// A model without a tokenizer must not be taken for one with that of an earlier export, which goes with it. One that stands
/// alone is somebody's own: it is neither deleted nor paired.
void remove_tokenizer(const fs::path& folder, NewFiles& files) {
  const bool exported = fs::exists(folder / kModel);
  for (const char* name : {"vocab.json", "merges.txt"}) {
    ONESTEP_CHECK(IoError, exported || !fs::exists(folder / name), (folder / name).string(),
                  ": would be taken for the tokenizer of the model, which has none of that kind (name another folder)");
    files.remove(name);
  }
}

}  // namespace

Gpt2 read_gpt2(const fs::path& folder, bool quiet) {
  ONESTEP_CHECK(IoError, fs::is_directory(folder), folder.string(),
                ": is not a folder (needs one with config.json and model.safetensors)");
  const NoGradGuard no_grad;
  Gpt2 gpt2{read_config((folder / kConfig).string()), {}};
  const std::string path = (folder / kModel).string();
  TensorMap tensors = read_tensors(path, gpt2.model, quiet);
  for (const Expected& expected : expected_tensors(gpt2.model))
    gpt2.state.emplace_back(expected.name, take(tensors, expected, path));
  ONESTEP_CHECK(IoError, tensors.empty(), path, ": tensor \"", tensors.empty() ? "" : tensors.begin()->first,
                "\": is no part of the GPT-2 that config.json describes");
  return gpt2;
}

void write_gpt2(const fs::path& folder, const Gpt2& gpt2, const BpeVocabulary* tokenizer, bool quiet) {
  const NoGradGuard no_grad;
  const std::string config = write_config(gpt2.model).dump(2) + "\n";
  const TensorMap state(gpt2.state.begin(), gpt2.state.end());
  TensorMap tensors;  // sorted by name, as transformers writes them
  for (const Expected& expected : expected_tensors(gpt2.model)) {
    const auto found = state.find(expected.name);
    ONESTEP_CHECK(ConfigError, found != state.end() || expected.name.ends_with(".bias"), "export: the model has no ",
                  expected.name);
    const Tensor tensor = found == state.end() ? zeros(expected.shape) : found->second.to(DType::float32);
    tensors[expected.name] = expected.transposed ? transpose(tensor, 0, 1) : tensor;
  }
  check_replaces_gpt2(folder);
  NewFiles files(folder);
  if (tokenizer == nullptr) remove_tokenizer(folder, files);
  files.add(kConfig, config);  // moved first: a model is never left without its config
  write_safetensors(files.add(kModel).string(), {tensors.begin(), tensors.end()}, {{"format", "pt"}}, quiet);
  if (tokenizer != nullptr) write_bpe(files, *tokenizer);
  files.finish();
}

}  // namespace onestep::train
