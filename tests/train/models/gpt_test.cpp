// The GPT against plain loops in double, with each of its variants.
#include "train/models/gpt.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <vector>

#include "autograd/ops.h"
#include "autograd/testing/gradcheck.h"
#include "nn/module_case.h"
#include "nn/pack_weights.h"

using namespace onestep;
using namespace onestep::train;

namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

ModelConfig tiny(void (*change)(ModelConfig&)) {
  ModelConfig config{.kind = ModelKind::gpt, .d_model = 8, .num_heads = 2, .context_length = 6, .num_layers = 2, .d_ff = 12};
  change(config);
  return config;
}

struct Variant {
  const char* name;
  ModelConfig config;
};

std::vector<Variant> variants() {
  return {
      {"GPT-2", tiny([](ModelConfig&) {})},
      {"erf", tiny([](ModelConfig& c) { c.activation = train::Activation::gelu; })},
      {"no bias", tiny([](ModelConfig& c) { c.bias = false; })},
      {"untied", tiny([](ModelConfig& c) { c.tie_weights = false; })},
      {"rms_norm", tiny([](ModelConfig& c) { c.norm = NormKind::rms_norm, c.norm_eps = 1e-3; })},
      {"swiglu", tiny([](ModelConfig& c) { c.activation = train::Activation::swiglu; })},
      {"all at once", tiny([](ModelConfig& c) {
         c.activation = train::Activation::swiglu, c.norm = NormKind::rms_norm, c.tie_weights = c.bias = false;
       })},
  };
}

/// A GPT in float64 whose every parameter is normal(0, 0.5): no zero bias hides a mistake.
std::unique_ptr<Gpt> make_gpt(const ModelConfig& config, Generator& generator) {
  auto model = std::make_unique<Gpt>(config, 11, generator);
  model->to(DType::float64);
  const NoGradGuard no_grad;
  for (Tensor parameter : model->parameters()) copy_(parameter, randn(parameter.shape(), generator, DType::float64) * 0.5);
  return model;
}

/// The formulas of a GPT in plain loops.
class NaiveGpt {
 public:
  NaiveGpt(const Gpt& model, const ModelConfig& config) : config_(config) {
    for (const auto& [name, tensor] : model.state_dict()) {
      values_[name] = tensor.to_vector<double>();
      shapes_[name] = tensor.shape();
    }
  }

  Rows logits(const std::vector<int64_t>& tokens) const {
    Rows x;
    for (size_t t = 0; t < tokens.size(); ++t)
      x.push_back(sum(row("transformer.wte.weight", static_cast<size_t>(tokens[t])), row("transformer.wpe.weight", t)));
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      const std::string block = "transformer.h." + std::to_string(i) + ".";
      const Rows attended = attention(block + "attn.", each(x, [&](const Row& r) { return norm(block + "ln_1.", r); }));
      for (size_t t = 0; t < x.size(); ++t) {
        x[t] = sum(x[t], attended[t]);
        x[t] = sum(x[t], feed_forward(block + "mlp.", norm(block + "ln_2.", x[t])));
      }
    }
    const std::string head = config_.tie_weights ? "transformer.wte." : "lm_head.";
    return each(x, [&](const Row& r) { return linear(head, norm("transformer.ln_f.", r)); });
  }

 private:
  template <class F>
  static Rows each(const Rows& rows, F f) {
    Rows out;
    for (const Row& r : rows) out.push_back(f(r));
    return out;
  }
  static Row sum(Row a, const Row& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  Row row(const std::string& name, size_t i) const {
    const auto width = static_cast<size_t>(shapes_.at(name).back());
    const auto first = values_.at(name).begin() + static_cast<std::ptrdiff_t>(i * width);
    return {first, first + static_cast<std::ptrdiff_t>(width)};
  }
  Row linear(const std::string& layer, const Row& x) const {
    Row y(static_cast<size_t>(shapes_.at(layer + "weight")[0]));
    for (size_t i = 0; i < y.size(); ++i) {
      const Row w = row(layer + "weight", i);
      y[i] = has(layer + "bias") ? values_.at(layer + "bias")[i] : 0.0;
      for (size_t j = 0; j < x.size(); ++j) y[i] += w[j] * x[j];
    }
    return y;
  }
  Row norm(const std::string& layer, Row x) const {
    const auto n = static_cast<double>(x.size());
    double mean = 0, square = 0;
    if (config_.norm == NormKind::layer_norm)
      for (const double v : x) mean += v / n;
    for (const double v : x) square += (v - mean) * (v - mean) / n;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = (x[i] - mean) / std::sqrt(square + config_.norm_eps) * values_.at(layer + "weight")[i];
      if (has(layer + "bias")) x[i] += values_.at(layer + "bias")[i];
    }
    return x;
  }
  Row feed_forward(const std::string& layer, const Row& x) const {
    if (config_.activation == train::Activation::swiglu) {
      Row gate = linear(layer + "gate_proj.", x);
      const Row up = linear(layer + "up_proj.", x);
      for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      return linear(layer + "down_proj.", gate);
    }
    Row hidden = linear(layer + "c_fc.", x);
    for (double& v : hidden)
      v *= config_.activation == train::Activation::gelu
               ? 0.5 * (1 + std::erf(v / std::sqrt(2.0)))
               : 0.5 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
    return linear(layer + "c_proj.", hidden);
  }
  Rows attention(const std::string& layer, const Rows& x) const {
    const Rows qkv = each(x, [&](const Row& r) { return linear(layer + "c_attn.", r); });
    const size_t d = x[0].size(), heads = static_cast<size_t>(config_.num_heads), width = d / heads;
    Rows out(x.size(), Row(d));
    for (size_t head = 0; head < heads; ++head) {
      for (size_t t = 0; t < x.size(); ++t) {
        Row weights(t + 1);
        double total = 0;
        for (size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (size_t i = head * width; i < (head + 1) * width; ++i) score += qkv[t][i] * qkv[s][d + i];
          total += weights[s] = std::exp(score / std::sqrt(static_cast<double>(width)));
        }
        for (size_t s = 0; s <= t; ++s)
          for (size_t i = head * width; i < (head + 1) * width; ++i) out[t][i] += weights[s] / total * qkv[s][2 * d + i];
      }
    }
    return each(out, [&](const Row& r) { return linear(layer + "c_proj.", r); });
  }

  ModelConfig config_;
  std::map<std::string, Row> values_;
  std::map<std::string, Shape> shapes_;
};

}  // namespace

TEST_CASE("gpt: every variant computes what plain loops do") {
  for (const auto& [name, config] : variants()) {
    const std::string& label = name;  // clang 14 captures no binding
    CAPTURE(label);
    Generator generator(3);
    const std::unique_ptr<Gpt> model = make_gpt(config, generator);
    const std::vector<int64_t> tokens{3, 10, 0, 3, 7};
    const std::vector<double> got = model->forward(from_values(tokens, {1, 5})).to_vector<double>();
    const Rows wanted = NaiveGpt(*model, config).logits(tokens);
    REQUIRE(got.size() == 5 * 11);
    for (size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs(got[i] - wanted[i / 11][i % 11]) <= 1e-12 * (1 + std::abs(wanted[i / 11][i % 11])));
    }
  }
}

TEST_CASE("gpt: the gradients of every variant agree with finite differences") {
  struct AsLayer : nn::Layer {
    explicit AsLayer(std::unique_ptr<Gpt> gpt) : model(std::move(gpt)) {}
    Tensor forward(const Tensor& tokens) const override { return model->forward(tokens); }
    std::string name() const override { return "AsLayer"; }
    void visit(nn::Visitor& visitor) override { visitor.child("model", *model); }
    std::unique_ptr<Gpt> model;
  };
  for (auto& [name, config] : variants()) {
    const std::string& label = name;  // clang 14 captures no binding
    CAPTURE(label);
    for (const double dropout : {0.0, 0.25}) {
      ModelConfig dropping = config;
      dropping.dropout = dropout;
      const GradcheckResult result =
          nn::gradcheck({"GPT", name, [&](Generator& g) { return std::make_unique<AsLayer>(make_gpt(dropping, g)); },
                         [](Generator& g) {
                           return randint(0, 11, {2, 4}, g);
                         }});
      CHECK_MESSAGE(result.passed, result.message);
    }
  }
}

TEST_CASE("gpt: a tied head is one tensor with the embedding and counted once") {
  Generator generator(1);
  const ModelConfig tied = tiny([](ModelConfig&) {}), untied = tiny([](ModelConfig&c) { c.tie_weights = false; });
  Gpt one(tied, 11, generator), two(untied, 11, generator);
  CHECK(two.num_parameters() == one.num_parameters() + 11 * 8);
  CHECK(two.named_parameters().back().first == "lm_head.weight");
  CHECK(one.named_parameters().back().first == "transformer.ln_f.bias");
  CHECK(&one.lm_head.weight.impl() == &one.transformer.wte.weight.impl());
  CHECK(one.repr().find("lm_head") == std::string::npos);
  CHECK(one.state_dict().back().first == "transformer.ln_f.bias");
}

TEST_CASE("gpt: all products with weights are with packed ones, a tied head's included") {
  for (const bool tie : {true, false}) {
    Generator generator(1);
    ModelConfig config = tiny([](ModelConfig&) {});
    config.tie_weights = tie;
    Gpt model(config, 11, generator);
    nn::pack_weights(model, WeightFormat::int8);
    CHECK(model.lm_head.packed);
    CHECK((model.transformer.wte.packed == model.lm_head.packed) == tie);
    for (const auto& entry : model.named_parameters()) {
      const std::string& name = entry.first;
      CHECK_MESSAGE((entry.second.dim() == 1 || name == "transformer.wpe.weight" || (!tie && name == "transformer.wte.weight")),
                    name);
    }
  }
}

TEST_CASE("gpt: too many tokens and an incomplete config are refused") {
  Generator generator(1);
  const Gpt model(tiny([](ModelConfig&) {}), 11, generator);
  CHECK_THROWS_WITH_AS(model.forward(zeros({1, 7}, DType::int64)),
                       "language model: tokens of shape [1, 7] (needs [B, T] with T up to the context length of 6)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(Gpt(ModelConfig{.kind = ModelKind::gpt}, 11, generator),
                       "gpt: needs a config of kind gpt with num_layers and d_ff: got kind gpt, num_layers 4, d_ff 0 "
                       "(resolve() completes one)",
                       ConfigError);
}
