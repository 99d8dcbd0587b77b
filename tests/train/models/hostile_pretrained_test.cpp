// Malicious GPT-2 models: config.json against model.safetensors. pretrained_gpt2_test.cpp pins the sentences.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/paths.h"
#include "tests/train/hostile.h"
#include "train/models/pretrained_files.h"

using namespace onestep;
using namespace onestep::testing;
namespace fs = std::filesystem;

namespace {

const fs::path kGolden = ONESTEP_SOURCE_DIR "/tests/goldens/hf_gpt2";

std::string good_config() {
  std::ostringstream text;
  text << std::ifstream(kGolden / "config.json").rdbuf();
  return text.str();
}

/// The config with one member's value replaced or added.
std::string with(const std::string& key, const std::string& value) {
  auto config = nlohmann::json::parse(good_config());
  config.erase(key);
  return replaced(config.dump(), "{", "{\"" + key + "\": " + value + ", ");
}

/// The messages continue after the folder's name.
void expect_configs_refused(const std::vector<Hostile>& configs) {
  const TemporaryFolder folder;
  fs::copy(kGolden / "model.safetensors", folder.path() / "model.safetensors");
  for (const Hostile& config : configs) {
    write(folder.path() / "config.json", config.bytes);
    const MemoryLimit limit(memory_for(config.bytes.size() + fs::file_size(folder.path() / "model.safetensors")));
    CAPTURE(config.bytes.substr(0, 300));
    expect_refusal(refusal<IoError>([&] { train::read_pretrained(folder.path()); }), folder.path().string() + "/", config);
  }
}

}  // namespace

TEST_CASE("hostile gpt2: malformed config.json") {
  std::vector<Hostile> cases = hostile_json();
  for (Hostile& config : cases) config.message = "config.json" + config.message;
  cases.push_back({"", "config.json: "});
  for (const char* root : {"[]", "null", "1", "\"gpt2\"", "true"}) cases.push_back({root, "config.json: "});
  for (const char* type : {"1", "true", "[]", "{}", "\"\"", "\"GPT2\"", "\"gpt_neo\"", "\"Llama\""})
    cases.push_back({with("model_type", type), "config.json: /model_type: "});
  cases.push_back({with("model_type", "null"), "config.json: /model_type: "});
  cases.push_back({std::string((1 << 20) + 1, ' '), "config.json: "});
  expect_configs_refused(cases);
}

TEST_CASE("hostile gpt2: invalid sizes") {
  std::vector<Hostile> cases;
  for (const std::string key : {"vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"})
    for (const char* value : {"0", "-1", "2.0", "1e30", "18446744073709551615", "4294967297", "\"2\"", "[2]", "true"})
      cases.push_back({with(key, value), "config.json: /" + key + ": "});
  for (const char* heads : {"3", "5", "17", "32"}) cases.push_back({with("n_head", heads), "config.json: /n_head: "});
  expect_configs_refused(cases);
}

TEST_CASE("hostile gpt2: sizes that the tensors do not have") {
  const std::string tensor = "model.safetensors: tensor \"transformer.";
  expect_configs_refused({
      {with("vocab_size", "16777216"), tensor + "wte.weight\": "},
      {with("vocab_size", "60"), tensor + "wte.weight\": "},
      {with("n_positions", "1048576"), tensor + "wpe.weight\": "},
      {with("n_embd", "65536"), tensor + "wte.weight\": "},
      {with("n_inner", "1048576"), tensor + "h.0.mlp.c_fc.weight\": "},
      {with("n_layer", "1000"), tensor + "h.2.ln_1.weight\": "},
      {with("n_layer", "1"), tensor + "h.1.attn.c_attn.bias\": "},
      {with("tie_word_embeddings", "false"), "model.safetensors: tensor \"lm_head.weight\": "},
  });
}

TEST_CASE("hostile gpt2: other invalid values") {
  std::vector<Hostile> cases;
  for (const char* key :
       {"scale_attn_weights", "scale_attn_by_inverse_layer_idx", "add_cross_attention", "tie_word_embeddings"})
    for (const char* value : {"1", "\"true\"", "[]"})
      cases.push_back({with(key, value), "config.json: /" + std::string(key) + ": "});
  cases.push_back({with("scale_attn_weights", "false"), "config.json: /scale_attn_weights: "});
  cases.push_back({with("add_cross_attention", "true"), "config.json: /add_cross_attention: "});
  for (const char* key : {"layer_norm_epsilon", "resid_pdrop", "embd_pdrop", "attn_pdrop"})
    for (const char* value : {"-0.5", "1.5", "1e300", "\"0\"", "[0]", "true"})
      cases.push_back({with(key, value), "config.json: /" + std::string(key) + ": "});
  for (const char* value : {"1", "\"\"", "\"tanh\"", "[\"gelu\"]"})
    cases.push_back({with("activation_function", value), "config.json: /activation_function: "});
  expect_configs_refused(cases);
}
