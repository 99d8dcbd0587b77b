// Adapters against those of Hugging Face's peft (tests/goldens/hf_adapters, hf_adapters.py), and files that are wrong.
#include "train/models/adapter_files.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "autograd/ops.h"
#include "tests/goldens.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/checkpoint/safetensors.h"
#include "train/models/adapters.h"
#include "train/models/language_model.h"

using namespace onestep;
using namespace onestep::train;
using nlohmann::json;
using onestep::testing::golden;
using onestep::testing::read;
using onestep::testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const fs::path kGoldens = ONESTEP_SOURCE_DIR "/tests/goldens";
constexpr const char* kPeftModels[] = {"gpt2", "gpt2_some", "llama3", "qwen2"};

/// A model of peft as ours.
struct Adapted {
  explicit Adapted(const std::string& name)
      : wanted(golden("hf_adapters/" + name + "/golden.json")),
        model(read_pretrained(kGoldens / wanted["base"].get<std::string>())) {
    const PretrainedAdapters adapters = read_adapters(kGoldens / "hf_adapters" / name, model.model);
    model.model.lora = adapters.lora;
    model.state.insert(model.state.end(), adapters.state.begin(), adapters.state.end());
  }

  /// The parameters of adapters by the names that peft gives them.
  std::map<std::string, Tensor> by_peft_name(nn::Module& net) const {
    std::map<std::string, Tensor> named;
    for (const auto& [name, tensor] : net.named_parameters()) {
      if (name.find(".lora_") == std::string::npos) continue;
      std::string theirs = name;
      if (model.model.rope) {
        const std::pair<const char*, const char*> changes[] = {
            {"transformer.h.", "model.layers."}, {".attn.", ".self_attn."}, {".c_attn.", "."}, {".c_proj.", ".o_proj."}};
        for (const auto& [from, to] : changes)
          if (const size_t at = theirs.find(from); at != std::string::npos) theirs.replace(at, std::string(from).size(), to);
      }
      named.emplace("base_model.model." + theirs, tensor);
    }
    return named;
  }

  json wanted;
  Pretrained model;
};

double largest_difference(const Tensor& got, const json& wanted) {
  const std::vector<float> a = got.to_vector<float>(), b = testing::numbers<float>(wanted);
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(double{a[i]} - double{b[i]}));
  return worst;
}

/// A copy of a golden folder, for changing.
struct Copy {
  explicit Copy(const std::string& name) : source(kGoldens / "hf_adapters" / name) {
    for (const char* file : {"adapter_config.json", "adapter_model.safetensors"}) fs::copy(source / file, folder.path() / file);
  }
  std::string refusal_with(const std::function<void(json&)>& change) const {
    json config = json::parse(read(source / "adapter_config.json"));
    change(config);
    std::ofstream(folder.path() / "adapter_config.json") << config;
    return error();
  }
  std::string refusal_with_tensors(const std::function<void(NamedTensors&)>& change) const {
    NamedTensors tensors = read_safetensors((source / "adapter_model.safetensors").string()).tensors;
    change(tensors);
    write_safetensors((folder.path() / "adapter_model.safetensors").string(), tensors);
    return error();
  }
  /// The error of read_adapters after `PATH/`.
  std::string error() const {
    const ModelConfig base = read_pretrained(kGoldens / "hf_gpt2").model;
    return testing::without_folder(testing::refusal<IoError>([&] { read_adapters(folder.path(), base); }), folder.path());
  }
  fs::path source;
  TemporaryFolder folder;
};

}  // namespace

TEST_CASE("adapter files: logits and gradients are those of peft") {
  for (const char* const name : kPeftModels) {
    CAPTURE(name);
    const Adapted adapted(name);
    Generator generator(1);
    const auto net = make_language_model(adapted.model.model, adapted.model.model.vocab_size, generator);
    net->load_state_dict(adapted.model.state);
    net->eval();
    const Tensor tokens = from_values(testing::numbers<int64_t>(adapted.wanted["tokens"]), {2, 20});
    const Tensor logits = net->forward(tokens);
    CHECK(largest_difference(logits, adapted.wanted["logits"]) <= 2e-5);
    const Tensor loss =
        cross_entropy(narrow(logits, 1, 0, 19).reshape({38, logits.size(2)}), narrow(tokens, 1, 1, 19).reshape({38}));
    CHECK(std::abs(loss.item() - adapted.wanted["loss"].get<double>()) <= 2e-5);
    loss.backward();
    const auto parameters = adapted.by_peft_name(*net);
    CHECK(parameters.size() == adapted.wanted["gradients"].size());
    for (const auto& named : parameters)
      CHECK_MESSAGE(largest_difference(named.second.grad(), adapted.wanted["gradients"].at(named.first)) <= 2e-5, named.first);
  }
}

TEST_CASE("adapter files: new adapters are drawn as peft draws them") {
  for (const char* const name : kPeftModels) {
    CAPTURE(name);
    const Adapted adapted(name);
    ModelConfig plain = adapted.model.model;
    plain.lora = {};
    Generator other(1), generator(adapted.wanted["seed"].get<int64_t>());
    const auto net = make_language_model(plain, plain.vocab_size, other);
    add_adapters(*net, adapted.model.model, generator);
    const auto parameters = adapted.by_peft_name(*net);
    for (const auto& drawn : adapted.wanted["drawn"].items())
      CHECK_MESSAGE(largest_difference(parameters.at(drawn.key()), drawn.value()) == 0, drawn.key());
  }
}

TEST_CASE("adapter files: what is written is what peft wrote") {
  for (const char* const name : kPeftModels) {
    CAPTURE(name);
    const Adapted adapted(name);
    const TemporaryFolder out;
    write_adapters(out.path(), adapted.model);
    write_adapters(out.path(), adapted.model);  // replaces it
    const fs::path theirs = kGoldens / "hf_adapters" / name;
    const NamedTensors wanted = read_safetensors((theirs / "adapter_model.safetensors").string()).tensors;
    const NamedTensors got = read_safetensors((out.path() / "adapter_model.safetensors").string()).tensors;
    REQUIRE(got.size() == wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].first == wanted[i].first);
      CHECK(equal(got[i].second, wanted[i].second));
    }
    const json ours = json::parse(read(out.path() / "adapter_config.json")),
               peft = json::parse(read(theirs / "adapter_config.json"));
    for (const auto& one : ours.items())
      if (one.key() != "target_modules") CHECK_MESSAGE(one.value() == peft.at(one.key()), one.key());
    CHECK(ours["target_modules"].get<std::set<std::string>>() == peft["target_modules"].get<std::set<std::string>>());
  }
}

TEST_CASE("adapter files: an adapter of queries and keys and values at once is three of a Llama") {
  Pretrained llama = read_pretrained(kGoldens / "hf_decoders/llama3");
  Pretrained parts = llama;
  llama.model.lora = {.rank = 2, .alpha = 4.0, .dropout = 0.0, .targets = {"c_attn"}};
  Generator generator(4);
  for (const Adapter& adapter : adapters(llama.model)) {
    llama.state.emplace_back(adapter.name() + ".lora_A.weight", randn({2, adapter.in}, generator));
    llama.state.emplace_back(adapter.name() + ".lora_B.weight", randn({adapter.rows, 2}, generator));
  }
  const TemporaryFolder out;
  write_adapters(out.path(), llama);
  const PretrainedAdapters three = read_adapters(out.path(), parts.model);
  CHECK(three.lora.targets == std::vector<std::string>{"k_proj", "q_proj", "v_proj"});
  parts.model.lora = three.lora;
  parts.state.insert(parts.state.end(), three.state.begin(), three.state.end());
  const nn::NamedTensors one = merged_state(llama.state, llama.model), same = merged_state(parts.state, parts.model);
  REQUIRE(one.size() == same.size());
  for (size_t i = 0; i < one.size(); ++i) CHECK(max(abs(one[i].second - same[i].second)).item() <= 1e-5);
}

TEST_CASE("adapter files: what our adapters are not is refused by its key or tensor") {
  const Copy copy("gpt2");
  CHECK(copy.error() == "");
  const auto with = [&](const char* key, const json& value) {
    return copy.refusal_with([&](json& config) { config[key] = value; });
  };
  const std::vector<std::pair<const char*, json>> wrong{{"peft_type", "PREFIX_TUNING"},
                                                        {"bias", "all"},
                                                        {"use_dora", true},
                                                        {"use_rslora", true},
                                                        {"rank_pattern", json{{"c_attn", 4}}},
                                                        {"modules_to_save", json::array({"lm_head"})},
                                                        {"r", 0},
                                                        {"r", 2.5},
                                                        {"lora_alpha", -1},
                                                        {"lora_dropout", "a"}};
  for (const auto& one : wrong)
    CHECK_MESSAGE(with(one.first, one.second).starts_with("adapter_config.json: /" + std::string(one.first) + ": must be "),
                  one.first);
  const std::string file = "adapter_model.safetensors: tensor \"", first = "base_model.model.transformer.h.0.attn.c_attn.lora_";
  CHECK(with("r", 4).starts_with(file + first + "A.weight\": must be floats [4, 16]"));
  CHECK(copy.refusal_with([](json&) {}) == "");
  CHECK(copy.refusal_with_tensors([](NamedTensors& tensors) { tensors.erase(tensors.begin() + 1); }) ==
        file + first + "B.weight\": is missing");
  CHECK(copy.refusal_with_tensors([](NamedTensors& tensors) { tensors[0].first += 'x'; }) ==
        file + first + "A.weight\": is missing");
  CHECK(copy.refusal_with_tensors([](NamedTensors& tensors) { tensors.emplace_back("more", zeros({1})); }) ==
        file + "more\": belongs to no layer of the base");
  CHECK(copy.refusal_with_tensors([](NamedTensors& tensors) { tensors.clear(); }) ==
        "adapter_model.safetensors: has no adapters");
}

TEST_CASE("adapter files: an export replaces adapters and nothing else") {
  const Adapted adapted("gpt2");
  const TemporaryFolder out;
  const auto refused = [&] { return testing::refusal<IoError>([&] { write_adapters(out.path(), adapted.model); }); };
  std::ofstream(out.path() / "adapter_model.safetensors") << "mine";
  CHECK(refused().starts_with((out.path() / "adapter_model.safetensors").string() + ": is not that of LoRA adapters"));
  std::ofstream(out.path() / "adapter_config.json") << R"({"peft_type": "IA3"})";
  CHECK(refused().starts_with((out.path() / "adapter_config.json").string() + ": is not that of LoRA adapters"));
  CHECK(read(out.path() / "adapter_model.safetensors") == "mine");
  Pretrained plain = adapted.model;
  plain.model.lora = {};
  CHECK_THROWS_AS(write_adapters(out.path(), plain), ConfigError);
}
