// The options of CausalSelfAttention against loops in double.
#include <cmath>

#include "attention/causal_self_attention.h"
#include "nn/init.h"
#include "tests/nn/check.h"

namespace onestep::attention {
namespace {

using testing::refusal;

/// What the module computes for one text [T, d_in], token by token and head by head.
std::vector<double> naive(const CausalSelfAttention& module, const Tensor& x) {
  const Options& o = module.options();
  const int64_t T = x.size(0), width = o.head_dim, group = o.num_heads / o.num_kv_heads;
  const auto projected = [](const nn::Linear& linear, const std::vector<double>& row) {
    std::vector<double> y;
    for (int64_t r = 0; r < linear.weight.size(0); ++r) {
      double total = linear.bias.defined() ? linear.bias.at({r}) : 0;
      for (int64_t c = 0; c < linear.weight.size(1); ++c) total += linear.weight.at({r, c}) * row[static_cast<size_t>(c)];
      y.push_back(total);
    }
    return y;
  };
  const auto turn = [&](std::vector<double>& row, int64_t first, int64_t position) {
    for (int64_t i = 0; o.rope && i < width / 2; ++i) {
      double angle =
          static_cast<double>(position) * std::pow(o.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(width));
      if (o.rope_scaling.kind == RotaryScaling::Kind::linear) angle /= o.rope_scaling.factor;
      double &a = row[static_cast<size_t>(first + i)], &b = row[static_cast<size_t>(first + i + width / 2)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  };
  const auto normalise = [&](std::vector<double>& row, int64_t first, const std::optional<nn::RMSNorm>& norm) {
    double square = 0;
    for (int64_t i = 0; norm && i < width; ++i) square += std::pow(row[static_cast<size_t>(first + i)], 2);
    const double scale = 1 / std::sqrt(square / static_cast<double>(width) + o.norm_eps);
    for (int64_t i = 0; norm && i < width; ++i) row[static_cast<size_t>(first + i)] *= scale * norm->weight.at({i});
  };
  std::vector<std::vector<double>> qkv;
  for (int64_t t = 0; t < T; ++t) {
    qkv.push_back(projected(module.c_attn, x[t].to_vector<double>()));
    for (int64_t h = 0; h < o.num_heads + o.num_kv_heads; ++h) {
      normalise(qkv.back(), h * width, h < o.num_heads ? module.q_norm : module.k_norm);
      turn(qkv.back(), h * width, t);
    }
  }
  const auto at = [&](int64_t t, int64_t feature) { return qkv[static_cast<size_t>(t)][static_cast<size_t>(feature)]; };
  std::vector<double> result;
  for (int64_t t = 0; t < T; ++t) {
    std::vector<double> context(static_cast<size_t>(o.num_heads * width));
    for (int64_t h = 0; h < o.num_heads; ++h) {
      const int64_t key = (o.num_heads + h / group) * width, value = key + o.num_kv_heads * width;
      double total = 0;
      std::vector<double> sums(static_cast<size_t>(width));
      for (int64_t s = o.window > 0 ? std::max<int64_t>(0, t - o.window + 1) : 0; s <= t; ++s) {
        double score = 0;
        for (int64_t i = 0; i < width; ++i) score += at(t, h * width + i) * at(s, key + i);
        const double weight = std::exp(score / std::sqrt(static_cast<double>(width)));
        total += weight;
        for (int64_t i = 0; i < width; ++i) sums[static_cast<size_t>(i)] += weight * at(s, value + i);
      }
      for (int64_t i = 0; i < width; ++i) context[static_cast<size_t>(h * width + i)] = sums[static_cast<size_t>(i)] / total;
    }
    const std::vector<double> row = projected(module.c_proj, context);
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

void check_against_naive(const char* what, Options options) {
  CAPTURE(what);
  options.context_length = 12;
  Generator generator(3);
  CausalSelfAttention module(options, generator);
  for (auto& norm : {&module.q_norm, &module.k_norm})
    if (*norm) nn::init::uniform_((*norm)->weight, 0.5, 1.5, generator);
  const Tensor x = randn({11, options.d_in}, generator);
  const std::vector<double> want = naive(module, x);
  const AttentionResult steps = module.forward_with_weights(x);
  for (const Tensor& got : {module(x), steps.context}) {
    const std::vector<double> values = got.to_vector<double>();
    REQUIRE(values.size() == want.size());
    for (size_t i = 0; i < want.size(); ++i) CHECK(std::abs(values[i] - want[i]) <= 2e-6 + 1e-5 * std::abs(want[i]));
  }
  CHECK(steps.weights.shape() == Shape{options.num_heads, 11, 11});
}

TEST_CASE("CausalSelfAttention: every option is what loops in double compute") {
  check_against_naive("plain", {.d_in = 5, .d_out = 8, .num_heads = 2});
  check_against_naive("biases", {.d_in = 5, .d_out = 8, .num_heads = 2, .qkv_bias = true});
  check_against_naive("without output bias", {.d_in = 5, .d_out = 8, .num_heads = 2, .out_bias = false});
  check_against_naive("grouped queries", {.d_in = 5, .d_out = 12, .num_heads = 6, .num_kv_heads = 2});
  check_against_naive("one head of keys and values", {.d_in = 5, .d_out = 12, .num_heads = 3, .num_kv_heads = 1});
  check_against_naive("window", {.d_in = 5, .d_out = 8, .num_heads = 2, .window = 3});
  check_against_naive("window of one", {.d_in = 5, .d_out = 8, .num_heads = 2, .window = 1});
  check_against_naive("window wider than the text", {.d_in = 5, .d_out = 8, .num_heads = 2, .window = 100});
  check_against_naive("rope", {.d_in = 5, .d_out = 8, .num_heads = 2, .rope = true});
  check_against_naive("rope with its theta", {.d_in = 5, .d_out = 12, .num_heads = 2, .rope = true, .rope_theta = 50});
  check_against_naive("rope with linear scaling",
                      {.d_in = 5, .d_out = 8, .num_heads = 2, .rope = true, .rope_scaling = {RotaryScaling::Kind::linear, 3}});
  check_against_naive("wide heads", {.d_in = 5, .d_out = 7, .num_heads = 2, .num_kv_heads = 1, .head_dim = 6});
  check_against_naive("normalised queries and keys", {.d_in = 5, .d_out = 8, .num_heads = 2, .qk_norm = true});
  check_against_naive("narrow heads that are normalised and rotated", {.d_in = 5,
                                                                       .d_out = 9,
                                                                       .num_heads = 4,
                                                                       .num_kv_heads = 2,
                                                                       .window = 3,
                                                                       .rope = true,
                                                                       .head_dim = 4,
                                                                       .qk_norm = true,
                                                                       .norm_eps = 0.1});
  check_against_naive("all", {.d_in = 6,
                              .d_out = 16,
                              .num_heads = 4,
                              .qkv_bias = true,
                              .out_bias = false,
                              .num_kv_heads = 2,
                              .window = 4,
                              .rope = true});
}

TEST_CASE("CausalSelfAttention: with rope only the distance of two tokens counts") {
  Generator generator(3);
  const CausalSelfAttention module({.d_in = 4, .d_out = 8, .context_length = 40, .num_heads = 2, .window = 3, .rope = true},
                                   generator);
  const Tensor x = randn({4, 4}, generator);
  const Tensor text = cat({randn({30, 4}, generator), x});
  CHECK(allclose(module(text).slice(0, 32, 34), module(cat({randn({3, 4}, generator), x})).slice(0, 5, 7), 1e-4, 1e-5));
}

TEST_CASE("CausalSelfAttention: options that do not fit are refused before any draw") {
  Generator generator(5);
  const std::string state = generator.state();
  const Options good{.d_in = 4, .d_out = 12, .context_length = 8, .num_heads = 4};
  const auto error = [&](auto change) {
    Options options = good;
    change(options);
    return refusal<Error>([&] { CausalSelfAttention(options, generator); });
  };
  CHECK(error([](auto& o) { o.num_kv_heads = 3; }) ==
        "CausalSelfAttention: num_heads must be divisible by num_kv_heads: num_heads=4, num_kv_heads=3");
  CHECK(error([](auto& o) { o.num_kv_heads = -2; }).starts_with("CausalSelfAttention: num_heads "));
  CHECK(error([](auto& o) { o.window = -1; }) == "CausalSelfAttention: window cannot be negative: got -1");
  CHECK(error([](auto& o) { o.rope = true; }) == "CausalSelfAttention: rope needs heads of even width: got 3 features a head");
  CHECK(error([](auto& o) { o.rope_theta = 0; }) == "CausalSelfAttention: rope_theta must be at least 1: got 0");
  CHECK(generator.state() == state);
  CHECK(CausalSelfAttention(good, generator).options().num_kv_heads == 4);
}

}  // namespace
}  // namespace onestep::attention
