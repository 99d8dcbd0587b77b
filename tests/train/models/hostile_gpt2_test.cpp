// GPT-2 models from outside that somebody made to do harm: config.json against model.safetensors.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/paths.h"
#include "tests/train/hostile.h"
#include "train/models/gpt2_files.h"

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

/// Configs, each with what is said after the folder's name.
void expect_configs_refused(const std::vector<Hostile>& configs) {
  const TemporaryFolder folder;
  fs::copy(kGolden / "model.safetensors", folder.path() / "model.safetensors");
  for (const Hostile& config : configs) {
    write(folder.path() / "config.json", config.bytes);
    const MemoryLimit limit(memory_for(config.bytes.size() + fs::file_size(folder.path() / "model.safetensors")));
    CAPTURE(config.bytes.substr(0, 300));
    CHECK(refusal<IoError>([&] { train::read_gpt2(folder.path()); }) == folder.path().string() + "/" + config.message);
  }
}

}  // namespace

TEST_CASE("hostile gpt2: config.json that is none") {
  std::vector<Hostile> cases = hostile_json();
  for (Hostile& config : cases) config.message = "config.json" + config.message;
  cases.push_back({"", "config.json: is empty"});
  for (const char* root : {"[]", "null", "1", "\"gpt2\"", "true"})
    cases.push_back({root, std::string("config.json: must be an object: got ") + root});
  for (const char* type : {"1", "true", "[]", "{}", "\"\"", "\"GPT2\"", "\"gpt_neo\"", "\"llama\""})
    cases.push_back({with("model_type", type), std::string("config.json: /model_type: must be \"gpt2\": got ") + type});
  cases.push_back({with("model_type", "null"), "config.json: /model_type: must be \"gpt2\": got nothing"});
  cases.push_back({std::string((1 << 20) + 1, ' '), "config.json: too large: 1048577 bytes, at most 1 MiB are read"});
  expect_configs_refused(cases);
}

TEST_CASE("hostile gpt2: sizes that are none") {
  std::vector<Hostile> cases;
  for (const auto& [key, most] : std::vector<std::pair<std::string, std::string>>{{"vocab_size", "16777216"},
                                                                                  {"n_positions", "1048576"},
                                                                                  {"n_embd", "65536"},
                                                                                  {"n_layer", "1000"},
                                                                                  {"n_head", "65536"},
                                                                                  {"n_inner", "1048576"}}) {
    for (const auto& [value, shown] :
         std::vector<std::pair<std::string, std::string>>{{"0", "0"},
                                                          {"-1", "-1"},
                                                          {"2.0", "2.0"},
                                                          {"1e30", "1e+30"},
                                                          {"18446744073709551615", "18446744073709551615"},
                                                          {"4294967297", "4294967297"},
                                                          {"\"2\"", "\"2\""},
                                                          {"[2]", "[2]"},
                                                          {"true", "true"}})
      cases.push_back(
          {with(key, value), "config.json: /" + key + ": must be a whole number from 1 to " + most + ": got " + shown});
  }
  for (const char* heads : {"3", "5", "17", "32"})
    cases.push_back({with("n_head", heads), std::string("config.json: /n_head: must divide n_embd = 16: got ") + heads});
  expect_configs_refused(cases);
}

TEST_CASE("hostile gpt2: sizes that the tensors do not have") {
  const std::string tensor = "model.safetensors: tensor \"transformer.", says = " as config.json says: is ";
  expect_configs_refused({
      {with("vocab_size", "16777216"), tensor + "wte.weight\": must be [16777216,16]" + says + "[61,16]"},
      {with("vocab_size", "60"), tensor + "wte.weight\": must be [60,16]" + says + "[61,16]"},
      {with("n_positions", "1048576"), tensor + "wpe.weight\": must be [1048576,16]" + says + "[24,16]"},
      {with("n_embd", "65536"), tensor + "wte.weight\": must be [61,65536]" + says + "[61,16]"},
      {with("n_inner", "1048576"), tensor + "h.0.mlp.c_fc.weight\": must be [16,1048576]" + says + "[16,64]"},
      {with("n_layer", "1000"), tensor + "h.2.ln_1.weight\": is missing"},
      {with("n_layer", "1"), tensor + "h.1.attn.c_attn.bias\": is no part of the GPT-2 that config.json describes"},
      {with("tie_word_embeddings", "false"), "model.safetensors: tensor \"lm_head.weight\": is missing"},
  });
}

TEST_CASE("hostile gpt2: other values that are none") {
  std::vector<Hostile> cases;
  for (const char* key :
       {"scale_attn_weights", "scale_attn_by_inverse_layer_idx", "add_cross_attention", "tie_word_embeddings"})
    for (const char* value : {"1", "\"true\"", "[]"})
      cases.push_back({with(key, value), "config.json: /" + std::string(key) + ": must be true or false: got " + value});
  cases.push_back({with("scale_attn_weights", "false"), "config.json: /scale_attn_weights: only true is supported"});
  cases.push_back({with("add_cross_attention", "true"), "config.json: /add_cross_attention: only false is supported"});
  for (const char* key : {"layer_norm_epsilon", "resid_pdrop", "embd_pdrop", "attn_pdrop"})
    for (const auto& [value, shown] : std::vector<std::pair<std::string, std::string>>{
             {"-0.5", "-0.5"}, {"1.5", "1.5"}, {"1e300", "1e+300"}, {"\"0\"", "\"0\""}, {"[0]", "[0]"}, {"true", "true"}})
      cases.push_back({with(key, value), "config.json: /" + std::string(key) + ": must be a number from 0 to 1: got " + shown});
  for (const char* value : {"1", "\"\"", "\"tanh\"", "[\"gelu\"]"})
    cases.push_back({with("activation_function", value),
                     std::string("config.json: /activation_function: must be gelu_new, gelu, relu or silu: got ") + value});
  expect_configs_refused(cases);
}
