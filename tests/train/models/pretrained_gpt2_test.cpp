// GPT-2 files against what transformers wrote (tests/goldens/hf_gpt2, hf_gpt2.py), and files that are wrong.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "autograd/ops.h"
#include "tests/goldens.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/checkpoint/safetensors.h"
#include "train/models/gpt.h"
#include "train/models/pretrained_files.h"
#include "train/text/bpe_files.h"
#include "train/text/bpe_tokenizer.h"

using namespace onestep;
using namespace onestep::train;
using nlohmann::json;
using onestep::testing::golden;
using onestep::testing::read;
using onestep::testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const fs::path kGolden = ONESTEP_SOURCE_DIR "/tests/goldens/hf_gpt2";

void check_logits(const Pretrained& gpt2) {
  Generator generator(1);
  Gpt model(gpt2.model, gpt2.model.vocab_size, generator);
  model.load_state_dict(gpt2.state);
  model.eval();
  const json& wanted = golden("hf_gpt2/logits.json");
  const Tensor tokens = from_values(testing::numbers<int64_t>(wanted["tokens"]), {2, 24});
  const std::vector<float> logits = model.forward(tokens).to_vector<float>(),
                           expected = testing::numbers<float>(wanted["logits"]);
  REQUIRE(logits.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < logits.size(); ++i) worst = std::max(worst, std::abs(double{logits[i]} - double{expected[i]}));
  CHECK(worst <= 1e-5);
}

/// A copy of the golden folder, for changing.
class Copy {
 public:
  Copy() {
    for (const char* file : {"config.json", "model.safetensors"}) fs::copy(kGolden / file, folder_.path() / file);
  }
  const fs::path& path() const { return folder_.path(); }
  void change_config(const std::function<void(json&)>& change) {
    json config = json::parse(read(path() / "config.json"));
    change(config);
    std::ofstream(path() / "config.json") << config;
  }
  void change_tensors(const std::function<void(NamedTensors&)>& change) {
    const std::string file = (path() / "model.safetensors").string();
    NamedTensors tensors = read_safetensors(file).tensors;
    change(tensors);
    write_safetensors(file, tensors);
  }
  /// The error of read_pretrained after `PATH/`.
  std::string error() const {
    return testing::without_folder(testing::refusal<IoError>([&] { read_pretrained(path()); }), path());
  }

 private:
  TemporaryFolder folder_;
};

std::string config_error(const std::function<void(json&)>& change) {
  Copy copy;
  copy.change_config(change);
  return copy.error();
}

std::string tensor_error(const std::function<void(NamedTensors&)>& change) {
  Copy copy;
  copy.change_tensors(change);
  return copy.error();
}

}  // namespace

TEST_CASE("gpt2 files: an imported model computes transformers' logits") {
  const Pretrained gpt2 = read_pretrained(kGolden);
  CHECK(gpt2.model.vocab_size == 61);
  CHECK(gpt2.model.context_length == 24);
  CHECK(gpt2.model.d_ff == 64);
  check_logits(gpt2);
}

TEST_CASE("gpt2 files: what is read is written back to the byte") {
  const TemporaryFolder folder;
  write_pretrained(folder.path() / "new" / "folder", read_pretrained(kGolden));
  CHECK(read(folder.path() / "new/folder/model.safetensors") == read(kGolden / "model.safetensors"));
  const json written = json::parse(read(folder.path() / "new/folder/config.json"));
  const json original = json::parse(read(kGolden / "config.json"));
  CHECK(written["eos_token_id"].is_null());  // 50256 is no token of this vocabulary
  for (const auto& item : written.items())
    if (item.key() != "eos_token_id") CHECK_MESSAGE(original[item.key()] == item.value(), item.key());
}

TEST_CASE("gpt2 files: names without the prefix and the masks and tied head of older files are read") {
  Copy copy;
  copy.change_tensors([](NamedTensors& tensors) {
    for (auto& [name, _] : tensors) name = name.substr(std::string("transformer.").size());
    tensors.emplace_back("h.0.attn.bias", ones({1, 1, 24, 24}));
    tensors.emplace_back("lm_head.weight", tensors[27].second);
  });
  CHECK(read_safetensors((copy.path() / "model.safetensors").string()).tensors[27].first == "wte.weight");
  check_logits(read_pretrained(copy.path()));
}

TEST_CASE("gpt2 files: an untied head and layers without bias are exported") {
  const ModelConfig config{.kind = ModelKind::gpt,
                           .d_model = 8,
                           .num_heads = 2,
                           .context_length = 6,
                           .num_layers = 1,
                           .d_ff = 12,
                           .activation = Activation::gelu,
                           .bias = false,
                           .tie_weights = false,
                           .vocab_size = 11};
  Generator generator(1);
  const Gpt model(config, 11, generator);
  const TemporaryFolder folder;
  write_pretrained(folder.path(), {config, model.state_dict()});
  Pretrained back = read_pretrained(folder.path());
  CHECK(back.model.activation == Activation::gelu);
  CHECK_FALSE(back.model.tie_weights);
  CHECK(back.model.d_ff == 12);
  Gpt copy(back.model, 11, generator);
  copy.load_state_dict(back.state);
  const Tensor tokens = tensor({{1, 2, 10, 0}});
  CHECK(allclose(copy.forward(tokens), model.forward(tokens), 1e-5, 1e-6));
}

TEST_CASE("gpt2 files: the tokenizer of an earlier export goes with it and one that stands alone is not touched") {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "out", lone = folder.path() / "lone";
  const Pretrained gpt2 = read_pretrained(kGolden);
  const BpeTokenizer bytes(bpe_bytes());
  write_pretrained(out, gpt2, {.tokenizer = &bytes});
  CHECK(read_bpe_folder(out.string()) == bytes.vocabulary());
  std::ofstream(out / "notes.txt") << "mine";
  write_pretrained(out, gpt2);
  CHECK_FALSE(fs::exists(out / "vocab.json"));
  CHECK_FALSE(fs::exists(out / "merges.txt"));
  CHECK(read(out / "notes.txt") == "mine");
  check_logits(read_pretrained(out));

  fs::create_directory(lone);
  std::ofstream(lone / "merges.txt") << "mine";
  CHECK_THROWS_WITH_AS(write_pretrained(lone, gpt2),
                       (lone.string() + "/merges.txt: would be taken for the tokenizer of the model, which has none of that "
                                        "kind (name another folder)")
                           .c_str(),
                       IoError);
  CHECK(read(lone / "merges.txt") == "mine");
  CHECK(std::distance(fs::directory_iterator(lone), fs::directory_iterator()) == 1);
}

TEST_CASE("gpt2 files: a model that is not a GPT-2 is not exported") {
  const auto refusal = [](const std::function<void(ModelConfig&)>& change) {
    Pretrained gpt2 = read_pretrained(kGolden);
    change(gpt2.model);
    return testing::refusal<ConfigError>([&] { write_pretrained("/nonexistent/folder", gpt2); });
  };
  CHECK(refusal([](ModelConfig& m) { m.activation = Activation::swiglu; }) ==
        "export: model.activation is swiglu, which GPT-2 does not have");
  CHECK(refusal([](ModelConfig& m) { m.norm = NormKind::rms_norm; }).starts_with("export: model.norm is rms_norm"));
  CHECK(refusal([](ModelConfig& m) { m.kind = ModelKind::attention; }) ==
        "export: model.kind is attention: only gpt can be exported");
}

TEST_CASE("gpt2 files: a wrong config.json is refused with its key") {
  CHECK(config_error([](json&) {}) == "");
  CHECK(config_error([](json& c) { c["model_type"] = "gpt_neox"; }).starts_with("config.json: /model_type: "));
  CHECK(config_error([](json& c) { c.erase("model_type"); }) ==
        "config.json: /model_type: must be gpt2, llama, mistral, qwen2 or qwen3: got nothing");
  CHECK(config_error([](json& c) { c.erase("n_layer"); }) ==
        "config.json: /n_layer: must be a whole number from 1 to 1000: got nothing");
  CHECK(config_error([](json& c) { c["n_layer"] = 1e9; }).starts_with("config.json: /n_layer: "));
  CHECK(config_error([](json& c) { c["vocab_size"] = -61; }).starts_with("config.json: /vocab_size: "));
  CHECK(config_error([](json& c) { c["n_embd"] = 18446744073709551615u; }).starts_with("config.json: /n_embd: "));
  CHECK(config_error([](json& c) { c["n_head"] = 3; }) == "config.json: /n_head: must be a divisor of n_embd = 16: got 3");
  CHECK(config_error([](json& c) { c["activation_function"] = "tanh"; }) ==
        "config.json: /activation_function: must be gelu_new, gelu, relu or silu: got \"tanh\"");
  CHECK(config_error([](json& c) { c["attn_pdrop"] = 0.1; }) ==
        "config.json: /attn_pdrop: must be resid_pdrop = 0, the one dropout there is: got 0.1");
  CHECK(config_error([](json& c) { c["layer_norm_epsilon"] = "small"; }) ==
        "config.json: /layer_norm_epsilon: must be a number from 0 to 1: got \"small\"");
  CHECK(config_error([](json& c) { c["scale_attn_by_inverse_layer_idx"] = true; }) ==
        "config.json: /scale_attn_by_inverse_layer_idx: only false is supported");
  CHECK(config_error([](json& c) { c["scale_attn_weights"] = 1; }).starts_with("config.json: /scale_attn_weights: "));
  CHECK(config_error([](json& c) { c = json::array({1}); }) == "config.json: must be an object: got [1]");
}

TEST_CASE("gpt2 files: a wrong model.safetensors is refused with its tensor") {
  const std::string file = "model.safetensors: tensor ";
  CHECK(tensor_error([](NamedTensors&) {}) == "");
  CHECK(config_error([](json& c) { c["n_layer"] = 3; }) == file + "\"transformer.h.2.ln_1.weight\": is missing");
  CHECK(config_error([](json& c) { c["n_layer"] = 1; }) ==
        file + "\"transformer.h.1.attn.c_attn.bias\": is no part of the model that config.json describes");
  CHECK(config_error([](json& c) { c["vocab_size"] = 16'000'000; }) ==
        file + "\"transformer.wte.weight\": must be [16000000,16] as config.json says: is [61,16]");
  CHECK(config_error([](json& c) { c["tie_word_embeddings"] = false; }).starts_with(file + "\"lm_head.weight\": "));
  CHECK(tensor_error([](NamedTensors& t) {
          t[1].second = transpose(t[1].second, 0, 1);
        }).starts_with(file + "\"transformer.h.0.attn.c_attn.weight\": "));
  CHECK(tensor_error([](NamedTensors& t) { t[0].second = t[0].second.to(DType::float64); }) ==
        file + "\"transformer.h.0.attn.c_attn.bias\": must be float32, bfloat16 or float16: is float64");
  CHECK(tensor_error([](NamedTensors& t) {
          t.emplace_back("lm_head.weight", zeros({61, 16}));
        }) == file + "\"lm_head.weight\": differs from the token embedding, to which config.json ties it");
  CHECK(tensor_error([](NamedTensors& t) { t.clear(); }).starts_with(file + "\"transformer.wte.weight\": "));
}
