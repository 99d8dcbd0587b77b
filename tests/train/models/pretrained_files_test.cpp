// Decoders that transformers wrote (tests/goldens/hf_decoders, hf_decoders.py): their logits, their greedy continuation, and
// the way back.
#include "train/models/pretrained_files.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "autograd/ops.h"
#include "tests/goldens.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/checkpoint/safetensors_folder.h"
#include "train/models/generate.h"

using namespace onestep;
using namespace onestep::train;
using nlohmann::json;
using onestep::testing::golden;
using onestep::testing::read;
using onestep::testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const fs::path kGoldens = ONESTEP_SOURCE_DIR "/tests/goldens/hf_decoders";

const std::vector<std::string> kModels{"llama2", "llama3", "llama_biases", "mistral", "qwen2", "qwen3", "qwen3_window"};

std::unique_ptr<LanguageModel> build(const Pretrained& pretrained) {
  Generator generator(1);
  auto model = make_language_model(pretrained.model, pretrained.model.vocab_size, generator);
  model->load_state_dict(pretrained.state);
  model->eval();
  return model;
}

double worst_difference(LanguageModel& model, const json& wanted) {
  const auto tokens = testing::numbers<int64_t>(wanted["tokens"]);
  const Tensor batch = from_values(std::span(tokens), {1, static_cast<int64_t>(tokens.size())});
  const std::vector<float> logits = model.forward(batch).to_vector<float>(),
                           expected = testing::numbers<float>(wanted["logits"]);
  REQUIRE(logits.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < logits.size(); ++i) worst = std::max(worst, std::abs(double{logits[i]} - double{expected[i]}));
  return worst;
}

/// All tensors of a folder, by name.
std::map<std::string, Tensor> tensors_of(const fs::path& folder) {
  const SafetensorsFolder files(folder);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, found] : files.tensors()) tensors[name] = found.file->read(*found.entry);
  return tensors;
}

DType dtype_of_file(const std::string& name) { return tensors_of(kGoldens / name).begin()->second.dtype(); }

std::string bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), static_cast<size_t>(tensor.numel() * size_of(tensor.dtype()))};
}

/// A copy of a golden folder with a changed config.json, and how it is refused, without the folder's name.
std::string config_error(const std::string& name, const json& change) {
  const TemporaryFolder folder;
  const fs::path copy = folder.path() / "model";
  fs::copy(kGoldens / name, copy);
  json config = json::parse(read(copy / "config.json"));
  config.merge_patch(change);
  testing::write(copy / "config.json", config.dump());
  return testing::without_folder(testing::refusal<IoError>([&] { read_pretrained(copy); }), copy);
}

}  // namespace

TEST_CASE("pretrained: every family computes transformers' logits and continues a prompt as it does") {
  for (const std::string& name : kModels) {
    CAPTURE(name);
    const json& wanted = golden("hf_decoders/" + name + "/logits.json");
    const auto model = build(read_pretrained(kGoldens / name));
    CHECK(worst_difference(*model, wanted) <= 2e-5);
    const auto prompt = testing::numbers<int64_t>(wanted["prompt"]), greedy = testing::numbers<int64_t>(wanted["greedy"]);
    for (const bool cache : {true, false}) {
      Generator generator(1);
      GenerateOptions options;
      options.tokens = static_cast<int64_t>(greedy.size());
      options.sampling.temperature = 0;
      options.cache = cache;
      CHECK(generate(*model, prompt, options, generator).ids == greedy);
    }
  }
}

TEST_CASE("pretrained: prompts of different lengths are continued together as alone") {
  for (const std::string& name : kModels) {
    CAPTURE(name);
    const json& wanted = golden("hf_decoders/" + name + "/logits.json");
    const auto model = build(read_pretrained(kGoldens / name));
    const auto prompt = testing::numbers<int64_t>(wanted["prompt"]), greedy = testing::numbers<int64_t>(wanted["greedy"]);
    std::vector<int64_t> longer = prompt;
    longer.insert(longer.end(), greedy.begin(), greedy.begin() + 9);
    Generator first(1), second(1);
    const Prompt prompts[] = {{longer, &first}, {prompt, &second}};
    GenerateOptions options;
    options.tokens = 20;
    options.sampling.temperature = 0;
    const std::vector<Generated> results = generate(*model, prompts, options, {});
    CHECK(results[0].ids == std::vector(greedy.begin() + 9, greedy.begin() + 29));
    CHECK(results[1].ids == std::vector(greedy.begin(), greedy.begin() + 20));
  }
}

TEST_CASE("pretrained: config.json of every family is our model section") {
  const auto model = [](const std::string& name) { return read_pretrained(kGoldens / name).model; };
  const ModelConfig llama2 = model("llama2"), llama3 = model("llama3"), mistral = model("mistral"), qwen2 = model("qwen2"),
                    qwen3 = model("qwen3"), window = model("qwen3_window"), biases = model("llama_biases");
  CHECK(llama2.rope_scaling == RotaryScaling::Kind::linear);
  CHECK(llama2.rope_factor == 4);
  CHECK(llama2.num_kv_heads == 4);
  CHECK_FALSE(llama2.tie_weights);
  CHECK(llama2.norm_eps == 1e-5);
  CHECK(llama3.rope_scaling == RotaryScaling::Kind::llama3);
  CHECK(llama3.rope_theta == 500000);
  CHECK(llama3.rope_original_context == 16);
  CHECK(llama3.num_kv_heads == 2);
  CHECK(llama3.d_ff == 24);
  CHECK(mistral.window == 5);
  CHECK(mistral.head_dim == 6);
  CHECK(qwen2.attention_bias == Biases::qkv);
  CHECK(qwen2.window == 0);
  CHECK(qwen2.rope_theta == 1e6);
  CHECK(qwen2.tie_weights);
  CHECK(qwen3.qk_norm);
  CHECK(qwen3.head_dim == 10);
  CHECK(qwen3.attention_bias == Biases::none);
  CHECK(window.window == 7);
  CHECK(window.attention_bias == Biases::all);
  CHECK(biases.mlp_bias == Biases::all);
}

TEST_CASE("pretrained: an export has the bytes of the tensors that were read, in their dtype, and the same model section") {
  for (const std::string& name : kModels) {
    CAPTURE(name);
    const TemporaryFolder folder;
    const Pretrained pretrained = read_pretrained(kGoldens / name);
    write_pretrained(folder.path(), pretrained, {.dtype = dtype_of_file(name)});
    const auto original = tensors_of(kGoldens / name), written = tensors_of(folder.path());
    CHECK(written.size() == original.size());
    for (const auto& entry : original) {
      const std::string& tensor = entry.first;
      REQUIRE_MESSAGE(written.contains(tensor), tensor);
      CHECK_MESSAGE(written.at(tensor).shape() == entry.second.shape(), tensor);
      CHECK_MESSAGE(written.at(tensor).dtype() == entry.second.dtype(), tensor);
      CHECK_MESSAGE(bytes_of(written.at(tensor)) == bytes_of(entry.second), tensor);
    }
    const Pretrained back = read_pretrained(folder.path());
    CHECK(back.model == pretrained.model);
    const json before = json::parse(read(kGoldens / name / "config.json")),
               after = json::parse(read(folder.path() / "config.json"));
    CHECK(after["model_type"] == before["model_type"]);
    CHECK(after["architectures"] == before["architectures"]);
  }
}

TEST_CASE("pretrained: a base model without the head is read by the names that it has") {
  const TemporaryFolder folder;
  NamedTensors tensors;
  for (const auto& [name, tensor] : tensors_of(kGoldens / "qwen2"))
    tensors.emplace_back(name.substr(std::string("model.").size()), tensor);
  CHECK(tensors[0].first == "embed_tokens.weight");
  tensors.emplace_back("layers.0.self_attn.rotary_emb.inv_freq", ones({2}));
  tensors.emplace_back("lm_head.weight", tensors[0].second);  // a head that repeats the embedding
  write_safetensors((folder.path() / "model.safetensors").string(), tensors);
  fs::copy(kGoldens / "qwen2/config.json", folder.path() / "config.json");
  CHECK(worst_difference(*build(read_pretrained(folder.path())), golden("hf_decoders/qwen2/logits.json")) <= 2e-5);
  tensors.back().second = zeros(tensors[0].second.shape());
  write_safetensors((folder.path() / "model.safetensors").string(), tensors);
  CHECK(testing::refusal<IoError>([&] {
          read_pretrained(folder.path());
        }).starts_with((folder.path() / "model.safetensors").string() + ": tensor \"lm_head.weight\": differs "));
}

TEST_CASE("pretrained: a config that asks for what our gpt does not have is refused with its key") {
  CHECK(config_error("llama3", json::object()) == "");
  CHECK(config_error("llama3", {{"hidden_act", "gelu"}}) == "config.json: /hidden_act: must be silu: got \"gelu\"");
  CHECK(config_error("llama3", {{"rope_scaling", {{"rope_type", "yarn"}}}}) ==
        "config.json: /rope_scaling/rope_type: must be default, linear or llama3: got \"yarn\"");
  CHECK(config_error("llama3", {{"rope_scaling", {{"factor", 0.5}}}}).starts_with("config.json: /rope_scaling/factor: "));
  CHECK(config_error("llama3", {{"rope_scaling", {{"low_freq_factor", nullptr}}}})
            .starts_with("config.json: /rope_scaling/low_freq_factor: "));
  CHECK(config_error("llama3", {{"rope_scaling", {{"high_freq_factor", 1.0}}}})
            .starts_with("config.json: /rope_scaling/high_freq_factor: "));
  CHECK(config_error("llama3", {{"rope_scaling", 3}}).starts_with("config.json: /rope_scaling: "));
  CHECK(config_error("qwen3", {{"rope_parameters", {{"rope_theta", 0}}}})
            .starts_with("config.json: /rope_parameters/rope_theta: "));
  CHECK(config_error("llama3", {{"num_key_value_heads", 3}}).starts_with("config.json: /num_key_value_heads: "));
  CHECK(config_error("llama3", {{"head_dim", 5}}).starts_with("config.json: /head_dim: must be an even number"));
  CHECK(config_error("llama3", {{"attention_dropout", 0.1}}).starts_with("config.json: /attention_dropout: "));
  CHECK(config_error("llama3", {{"partial_rotary_factor", 0.5}}).starts_with("config.json: /partial_rotary_factor: "));
  CHECK(config_error("llama3", {{"quantization_config", json::object()}}).starts_with("config.json: /quantization_config: "));
  CHECK(config_error("qwen3_window", {{"layer_types", {"full_attention", "sliding_attention"}}})
            .starts_with("config.json: /layer_types: must be such that all layers have the window or none: got "));
  CHECK(config_error("qwen3_window", {{"layer_types", {"full_attention"}}}).starts_with("config.json: /layer_types: "));
  CHECK(config_error("qwen3_window", {{"layer_types", 3}}).starts_with("config.json: /layer_types: "));
  CHECK(config_error("qwen3_window", {{"layer_types", nullptr}, {"max_window_layers", 1}})
            .starts_with("config.json: /max_window_layers: "));
  CHECK(config_error("qwen3", {{"head_dim", 8}}).starts_with("model-0000"));  // the first tensor that has another shape
}

TEST_CASE("pretrained: a gpt that no family has is not exported") {
  const auto refusal = [](const std::string& name, const auto& change) {
    Pretrained pretrained = read_pretrained(kGoldens / name);
    change(pretrained.model);
    return testing::refusal<ConfigError>([&] { write_pretrained("/nonexistent/folder", pretrained); });
  };
  CHECK(refusal("llama3", [](ModelConfig& m) { m.activation = Activation::gelu; }) ==
        "export: model.activation is gelu: with model.rope it must be swiglu");
  CHECK(refusal("llama3", [](ModelConfig& m) { m.norm = NormKind::layer_norm; }) ==
        "export: model.norm is layer_norm: with model.rope it must be rms_norm");
  CHECK(refusal("qwen2", [](ModelConfig& m) {
          m.qk_norm = true;
        }).starts_with("export: no family has model.attention_bias = qkv, "));
  CHECK(refusal("llama_biases", [](ModelConfig& m) { m.window = 4; }).starts_with("export: no family has "));
}
