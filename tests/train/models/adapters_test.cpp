// model.lora: the adapters of a config are those of the model, and the merged state is the model's.
#include "train/models/adapters.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "nn/lora.h"
#include "tests/support.h"
#include "train/models/language_model.h"
#include "train/models/trainable.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::refusal;

namespace {

const char* const kLlama =
    R"("kind": "gpt", "num_layers": 2, "d_model": 16, "num_heads": 4, "num_kv_heads": 2, "rope": true, "norm": "rms_norm",
       "activation": "swiglu", "bias": false, "tie_weights": false, "lora": )";
const char* const kGpt2 = R"("kind": "gpt", "num_layers": 2, "d_model": 16, "num_heads": 4, "lora": )";

ModelConfig model_of(const std::string& model) {
  return parse_config(R"({"data": {"kind": "none"}, "model": {"vocab_size": 11, "context_length": 5, )" + model + "}}",
                      "run.json")
      .model;
}

std::vector<std::string> names_of(const std::string& model) {
  std::vector<std::string> names;
  for (const Adapter& adapter : adapters(model_of(model))) names.push_back(adapter.name());
  return names;
}

}  // namespace

TEST_CASE("adapters: targets name layers and in a llama parts of them") {
  const std::string gpt = kGpt2, llama = kLlama;
  using Names = std::vector<std::string>;
  CHECK(names_of(gpt + R"({"rank": 1})") == Names{"transformer.h.0.attn.c_attn", "transformer.h.1.attn.c_attn"});
  CHECK(names_of(gpt + R"({"rank": 1, "targets": ["h.1.*_fc", "attn.c_proj"]})") ==
        Names{"transformer.h.0.attn.c_proj", "transformer.h.1.attn.c_proj", "transformer.h.1.mlp.c_fc"});
  CHECK(names_of(llama + R"({"rank": 1})") == Names{"transformer.h.0.attn.c_attn.q_proj", "transformer.h.0.attn.c_attn.v_proj",
                                                    "transformer.h.1.attn.c_attn.q_proj",
                                                    "transformer.h.1.attn.c_attn.v_proj"});
  CHECK(names_of(llama + R"({"rank": 1, "targets": ["h.0.attn.c_attn", "o_proj", "k_proj", "lm_head"]})") ==
        Names{"transformer.h.0.attn.c_attn", "transformer.h.0.attn.c_proj", "transformer.h.1.attn.c_attn.k_proj",
              "transformer.h.1.attn.c_proj", "lm_head"});
  CHECK(names_of(R"("attention": "multi_head_wrapper", "num_heads": 2, "lora": {"rank": 1, "targets": ["W_key", "head"]})") ==
        Names{"att.heads.0.W_key", "att.heads.1.W_key", "head"});
  CHECK(refusal<ConfigError>([&] { names_of(gpt + R"({"rank": 1, "targets": ["c_attn", "c_atn"]})"); }) ==
        "config: /model/lora/targets/1: no linear layer has that name: c_atn (did you mean c_attn?)");
  const std::string embedding = refusal<ConfigError>([&] { names_of(gpt + R"({"rank": 1, "targets": ["wte"]})"); });
  CHECK(embedding.starts_with("config: /model/lora/targets/0: "));
  CHECK(embedding.ends_with(" wte (there are c_attn, c_fc, c_proj)"));
  const std::string merged = refusal<ConfigError>([&] { names_of(R"("attention": "einsum", "lora": {"rank": 1})"); });
  CHECK(merged.starts_with("config: /model/lora/targets/0: "));
  CHECK(testing::contains(merged, ": W_query"));
}

TEST_CASE("adapters: those of a config are those of the model and they alone are trained") {
  for (const std::string& model :
       {std::string(kGpt2) + R"({"rank": 3, "targets": ["*"]})", std::string(kLlama) + R"({"rank": 3, "targets": ["*_proj"]})",
        std::string(kLlama) + R"({"rank": 3, "targets": ["*"]})",
        std::string(R"("attention": "causal", "num_heads": 1, "lora": {"rank": 3, "targets": ["W_*", "head"]})")}) {
    CAPTURE(model);
    const ModelConfig config = model_of(model);
    Generator generator(1);
    const auto net = make_language_model(config, 11, generator);
    nn::NamedTensors built = net->named_parameters();
    std::vector<DecoderParameter> listed = model_parameters(config, 11);
    REQUIRE(listed.size() == built.size());
    std::sort(built.begin(), built.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::sort(listed.begin(), listed.end(), [](const auto& a, const auto& b) { return a.name() < b.name(); });
    Config whole;
    whole.model = config;
    const std::set<std::string> frozen = frozen_parameters(whole);
    for (size_t i = 0; i < built.size(); ++i) {
      CHECK(listed[i].name() == built[i].first);
      CHECK(listed[i].shape == built[i].second.shape());
      CHECK(built[i].second.requires_grad() == !frozen.contains(built[i].first));
      CHECK(built[i].second.requires_grad() == (built[i].first.find(".lora_") != std::string::npos));
    }
  }
}

TEST_CASE("adapters: one of the head has the rows of the vocabulary, also of one that the data gives") {
  ModelConfig config = model_of(std::string(kLlama) + R"({"rank": 3, "targets": ["lm_head"]})");
  for (const int64_t own : {int64_t{11}, int64_t{0}}) {
    config.vocab_size = own;
    Generator generator(1);
    const nn::NamedTensors state = make_language_model(config, 11, generator)->state_dict();
    const auto b =
        std::find_if(state.begin(), state.end(), [](const auto& named) { return named.first == "lm_head.lora_B.weight"; });
    REQUIRE(b != state.end());
    CHECK(b->second.shape() == Shape{11, 3});
    CHECK(model_parameters(config, 11).back().shape == b->second.shape());
  }
}

TEST_CASE("adapters: the base is drawn as without them") {
  ModelConfig config = model_of(std::string(kGpt2) + R"({"rank": 3})");
  Generator one(5), other(5);
  const nn::NamedTensors with = make_language_model(config, 11, one)->state_dict();
  config.lora = {};
  for (const auto& [name, tensor] : make_language_model(config, 11, other)->state_dict()) {
    const auto same =
        std::find_if(with.begin(), with.end(), [&, &key = name](const auto& named) { return named.first == key; });
    REQUIRE(same != with.end());
    CHECK(equal(same->second, tensor));
  }
}

TEST_CASE("adapters: the merged state is that of merge_lora and computes the same") {
  for (const std::string& model :
       {std::string(kGpt2) + R"({"rank": 2, "alpha": 5, "targets": ["c_attn", "c_fc"]})",
        std::string(kLlama) + R"({"rank": 2, "alpha": 5, "targets": ["q_proj", "v_proj", "down_proj", "lm_head"]})"}) {
    CAPTURE(model);
    ModelConfig config = model_of(model);
    Generator generator(3);
    const auto net = make_language_model(config, 11, generator);
    for (auto [name, parameter] : net->named_parameters()) {
      const NoGradGuard no_grad;
      if (name.ends_with("lora_B.weight")) copy_(parameter, randn(parameter.shape(), generator));
    }
    const Tensor tokens = arange(10).remainder(7).view({2, 5});
    const Tensor apart = net->forward(tokens).detach();
    const nn::NamedTensors merged = merged_state(net->state_dict(), config);
    config.lora = {};
    const auto plain = make_language_model(config, 11, generator);
    plain->load_state_dict(merged);
    CHECK(max(abs(plain->forward(tokens).detach() - apart)).item() <= 2e-5 * max(abs(apart)).item());
    CHECK(equal(net->forward(tokens).detach(), apart));  // nothing of it was changed
    nn::merge_lora(*net);
    CHECK(equal(plain->forward(tokens).detach(), net->forward(tokens).detach()));
  }
}
