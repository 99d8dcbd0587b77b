// The list of a gpt's parameters against the modules that are built.
#include "train/models/decoder.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "train/models/gpt.h"

using namespace onestep;
using namespace onestep::train;

namespace {

ModelConfig gpt_of(const std::string& keys) {
  return parse_config(R"({"data": {"kind": "none"}, "model": {"kind": "gpt", "vocab_size": 11, "d_model": 12, "num_heads": 6,
                         "num_layers": 2, "context_length": 5)" +
                          keys + "}}",
                      "run.json")
      .model;
}

}  // namespace

TEST_CASE("decoder: the parameters of a config are those of the model in their order") {
  for (const char* const keys :
       {"", R"(, "tie_weights": false)", R"(, "bias": false)", R"(, "rope": true)", R"(, "num_kv_heads": 2)",
        R"(, "norm": "rms_norm")", R"(, "activation": "swiglu", "d_ff": 7)", R"(, "head_dim": 4, "qk_norm": true)",
        R"(, "attention_bias": "qkv")", R"(, "attention_bias": "none", "mlp_bias": "all")",
        R"(, "bias": false, "attention_bias": "all")", R"(, "activation": "swiglu", "mlp_bias": "none", "num_kv_heads": 3)"}) {
    CAPTURE(keys);
    const ModelConfig config = gpt_of(keys);
    Generator generator(1);
    Gpt model(config, 11, generator);
    const nn::NamedTensors built = model.named_parameters();
    const std::vector<DecoderParameter> listed = decoder_parameters(config, 11);
    REQUIRE(listed.size() == built.size());
    for (size_t i = 0; i < built.size(); ++i) {
      CHECK(listed[i].name() == built[i].first);
      CHECK(listed[i].shape == built[i].second.shape());
    }
  }
}

TEST_CASE("decoder: a classifier has a head over classes, tied or not") {
  for (const char* const keys : {"", R"(, "tie_weights": false)"}) {
    const ModelConfig config = gpt_of(keys);
    Generator generator(1);
    Gpt model(config, 11, generator, /*num_classes=*/3);
    const nn::NamedTensors built = model.named_parameters();
    const std::vector<DecoderParameter> listed = decoder_parameters(config, 11, 3);
    REQUIRE(listed.size() == built.size());
    CHECK(listed.back().name() == "score.weight");
    CHECK(built.back().first == "score.weight");
    CHECK(listed.back().shape == built.back().second.shape());
  }
}

TEST_CASE("decoder: the parameters of the chapter's attention are listed as they are built") {
  for (const AttentionKind attention : values_of<AttentionKind>()) {
    for (const bool bias : {false, true}) {
      if (bias && (attention == AttentionKind::simplified || attention == AttentionKind::self_v1)) continue;
      ModelConfig config;
      config.attention = attention;
      config.d_model = 12;
      config.num_heads = attention > AttentionKind::causal ? 3 : 1;  // all after it have heads
      config.qkv_bias = bias;
      config.context_length = 5;
      CAPTURE(name_of(attention));
      CAPTURE(bias);
      Generator generator(1);
      const auto model = make_language_model(config, 11, generator);
      const nn::NamedTensors built = model->named_parameters();
      const std::vector<DecoderParameter> listed = base_parameters(config, 11);
      REQUIRE(listed.size() == built.size());
      // In the module its own parameters come before those of its layers.
      for (const auto& [name, tensor] : built) {
        const auto found =
            std::find_if(listed.begin(), listed.end(), [&, &key = name](const auto& p) { return p.name() == key; });
        REQUIRE(found != listed.end());
        CHECK(found->shape == tensor.shape());
      }
    }
  }
}

TEST_CASE("decoder: what a config leaves to other keys is written out once") {
  const ModelConfig plain = written_out(gpt_of(""));
  CHECK(plain.num_kv_heads == 6);
  CHECK(plain.head_dim == 2);
  CHECK(plain.attention_bias == Biases::all);
  CHECK(plain.mlp_bias == Biases::all);
  CHECK(written_out(plain) == plain);
  CHECK(written_out(gpt_of(R"(, "bias": false)")).mlp_bias == Biases::none);
  CHECK(query_width(written_out(gpt_of(R"(, "head_dim": 5)"))) == 30);
  CHECK(key_width(written_out(gpt_of(R"(, "head_dim": 5, "num_kv_heads": 2)"))) == 10);
}
