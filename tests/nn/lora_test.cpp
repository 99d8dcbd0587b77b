// Adapters against the formula, merged and unmerged, and what they leave alone.
#include "nn/lora.h"

#include <doctest/doctest.h>

#include <cmath>

#include "autograd/autocast.h"
#include "autograd/checkpoint.h"
#include "autograd/ops.h"
#include "autograd/testing/gradcheck.h"
#include "nn/feed_forward.h"
#include "nn/pack_weights.h"
#include "nn/sequential.h"
#include "tests/support.h"

using namespace onestep;
using namespace onestep::nn;
using onestep::testing::refusal;

namespace {

Tensor random(const Shape& shape, uint64_t seed, DType dtype = DType::float32) {
  Generator generator(static_cast<int64_t>(seed));
  return randn(shape, generator).to(dtype);
}

/// B is zero at first: gives every B of a model values.
void draw_b(Module& model) {
  uint64_t seed = 40;
  for (auto [name, parameter] : model.named_parameters()) {
    if (name.ends_with("lora_B.weight")) {
      const NoGradGuard no_grad;
      copy_(parameter, random(parameter.shape(), ++seed));
    }
  }
}

double largest_difference(const Tensor& a, const Tensor& b) { return max(abs(a - b)).to(DType::float64).item(); }

}  // namespace

TEST_CASE("lora: an adapter adds B A x alpha / rank and nothing before it is trained") {
  Generator generator(1);
  Linear layer(5, 3, true, generator);
  const Tensor x = random({2, 4, 5}, 2), before = layer(x);
  add_lora(layer, {.rank = 2, .alpha = 6.0}, generator);
  CHECK(equal(layer(x), before));
  draw_b(layer);
  const auto at = [](const Tensor& t, int64_t i, int64_t j) { return static_cast<double>(t[i][j].item()); };
  const Tensor y = layer(x).view({8, 3}), plain = before.view({8, 3}), rows = x.view({8, 5});
  const Lora::Part& part = layer.lora->parts[0];
  for (int64_t n = 0; n < 8; ++n) {
    for (int64_t o = 0; o < 3; ++o) {
      double moved = 0;
      for (int64_t r = 0; r < 2; ++r)
        for (int64_t i = 0; i < 5; ++i)
          moved += at(part.adapter->lora_B.weight, o, r) * at(part.adapter->lora_A.weight, r, i) * at(rows, n, i);
      CHECK(std::abs(at(y, n, o) - at(plain, n, o) - 3 * moved) < 1e-5);
    }
  }
  for (int64_t r = 0; r < 2; ++r)
    for (int64_t i = 0; i < 5; ++i) CHECK(std::abs(at(part.adapter->lora_A.weight, r, i)) <= 1 / std::sqrt(5.0));
}

TEST_CASE("lora: adapters of some rows are those of layers of their own") {
  Generator generator(1);
  Linear fused(6, 9, true, generator);
  const Tensor x = random({7, 6}, 3);
  std::vector<Tensor> parts;
  const std::vector<LoraRows> all{{"q", 0, 4}, {"v", 6, 3}};
  for (const LoraRows& rows : {all[1], all[0]}) {  // whatever the order in which they come
    LoraAdapter& adapter = add_lora(fused, {.rank = 3}, generator, rows);
    const NoGradGuard no_grad;
    copy_(adapter.lora_B.weight, random({rows.count, 3}, 8 + static_cast<uint64_t>(rows.first)));
  }
  const Tensor y = fused(x), plain = linear(x, fused.weight, fused.bias);
  CHECK(equal(narrow(y, 1, 4, 2), narrow(plain, 1, 4, 2)));
  for (size_t i = 0; i < 2; ++i) {
    const LoraRows& rows = all[i];
    const Tensor moved = narrow(plain, 1, rows.first, rows.count) + (*fused.lora->parts[i].adapter)(x);
    CHECK(equal(narrow(y, 1, rows.first, rows.count), moved));
  }
  std::vector<std::string> names;
  for (const auto& [name, _] : fused.named_parameters()) names.push_back(name);
  CHECK(names ==
        std::vector<std::string>{"weight", "bias", "q.lora_A.weight", "q.lora_B.weight", "v.lora_A.weight", "v.lora_B.weight"});
  CHECK(refusal<ConfigError>([&] {
          add_lora(fused, {}, generator, {"k", 3, 2});
        }) == "lora: rows 3 to 4 have an adapter already");
  CHECK_THROWS_AS(add_lora(fused, {}, generator, {"k", 9, 1}), IndexError);
  CHECK_THROWS_AS(add_lora(fused, {.rank = 0}, generator, {"k", 4, 1}), ConfigError);
}

TEST_CASE("lora: gradients are those of finite differences and the layer has none") {
  for (const bool some_rows : {false, true}) {
    Generator generator(1);
    Linear layer(3, 4, true, generator);
    add_lora(layer, {.rank = 2, .alpha = 1.0}, generator, some_rows ? LoraRows{"part", 1, 2} : LoraRows{});
    draw_b(layer);
    layer.to(DType::float64);
    LoraAdapter& adapter = *layer.lora->parts[0].adapter;
    Tensor x = random({2, 3}, 4, DType::float64).requires_grad_();
    const Tensor a = adapter.lora_A.weight, b = adapter.lora_B.weight;
    const auto f = [&](const std::vector<Tensor>& in) {
      adapter.lora_A.weight = in[1];
      adapter.lora_B.weight = in[2];
      return layer(in[0]);
    };
    CHECK(gradcheck(f, {x, a, b}).passed);
    f({x, a, b});
    x.zero_grad();
    sum(layer(x)).backward();
    CHECK_FALSE(layer.weight.grad().defined());
    CHECK_FALSE(layer.bias.grad().defined());
    CHECK(adapter.lora_A.weight.grad().defined());
    CHECK(x.grad().defined());
  }
}

TEST_CASE("lora: merged and unmerged are equal to rounding") {
  Generator generator(1);
  FeedForward net(8, 4, "gelu", generator);
  CHECK(add_lora(net, {.rank = 4, .alpha = 8.0}, {"layers.0", "2"}, generator) ==
        std::vector<std::string>{"layers.0", "layers.2"});
  draw_b(net);
  const Tensor x = random({5, 8}, 9), apart = net(x);
  const nn::NamedTensors state = net.state_dict();
  std::vector<Tensor> weights;
  for (const auto& [name, tensor] : state) weights.push_back(tensor.clone());
  merge_lora(net);
  merge_lora(net);  // once is enough
  CHECK_FALSE(equal(state[0].second, weights[0]));
  CHECK(largest_difference(net(x), apart) <= 2e-5 * max(abs(apart)).item());
  unmerge_lora(net);
  for (size_t i = 0; i < weights.size(); ++i) CHECK(largest_difference(state[i].second, weights[i]) <= 2e-6);
  CHECK(largest_difference(net(x), apart) <= 2e-5 * max(abs(apart)).item());
  pack_weights(net, WeightFormat::bf16);  // merges
  CHECK(net.parameters().size() == 2);
  const NoGradGuard no_grad;
  CHECK(largest_difference(net(x), apart) <= 0.03 * max(abs(apart)).item());
  CHECK(largest_difference(net(x), apart) > 0);
}

TEST_CASE("lora: dropout, recomputation and bf16") {
  Generator generator(1);
  Linear layer(16, 8, false, generator);
  add_lora(layer, {.rank = 4, .dropout = 0.5}, generator);
  draw_b(layer);
  const Tensor x = random({64, 16}, 2);
  const Tensor& a = layer.lora->parts[0].adapter->lora_A.weight;
  const auto grad_of = [&](bool recomputed) {
    layer.zero_grad();
    generator.manual_seed(5);
    const Tensor y = recomputed ? autograd::checkpoint([&](const Tensor& in) { return layer(in); }, x, generator) : layer(x);
    sum(square(y)).backward();
    return a.grad().clone();
  };
  CHECK(equal(grad_of(false), grad_of(true)));
  CHECK_FALSE(equal(layer(x), layer(x)));
  layer.eval();
  CHECK(equal(layer(x), layer(x)));
  const Tensor exact = layer(x);
  const AutocastGuard bf16;
  const Tensor y = layer(x);
  CHECK(y.dtype() == DType::bfloat16);
  CHECK(largest_difference(y.to(DType::float32), exact) <= 0.03 * max(abs(exact)).item());
  layer.zero_grad();
  sum(y.to(DType::float32)).backward();
  CHECK(a.grad().dtype() == DType::float32);
}

TEST_CASE("lora: targets name layers by the last parts of their names") {
  const std::string name = "transformer.h.0.attn.c_attn";
  for (const char* const target : {"c_attn", "attn.c_attn", "transformer.h.0.attn.c_attn", "*", "h.?.attn.*", "c_*"})
    CHECK(is_lora_target(target, name));
  for (const char* const target : {"attn", "_attn", "h.0", "h.1.*"}) CHECK_FALSE(is_lora_target(target, name));
  FeedForward net(4);
  CHECK(refusal<ConfigError>([&] { add_lora(net, {}, {"0", "1"}); }) == "lora: no Linear of FeedForward has the name 1");
  for (const Tensor& parameter : net.parameters()) CHECK(parameter.requires_grad());  // nothing was done
}
