#include "nn/init.h"

#include <cmath>

#include "nn/embedding.h"
#include "nn/linear.h"
#include "tests/nn/check.h"

namespace onestep::nn {
namespace {

using testing::refusal;

const nlohmann::json& seed_result(const char* id) {
  return testing::golden("reference.json").at("seed_results_full_precision").at(id).at("values");
}

/// The weights of `count` bias-free Linear(3, 2), one after another.
Tensor linear_weights(int64_t seed, int count) {
  Generator generator(seed);
  std::vector<Tensor> weights;
  for (int i = 0; i < count; ++i) weights.push_back(Linear(3, 2, false, generator).weight.detach());
  return stack(weights);
}

TEST_CASE("init: Linear weights have PyTorch's bits") {
  testing::check_same(linear_weights(789, 3), seed_result("linear_weights_seed789_three_3to2"));
  testing::check_same(linear_weights(123, 3), seed_result("linear_weights_seed123_three_3to2"));
  testing::check_same(linear_weights(123, 6), seed_result("linear_weights_seed123_six_3to2"));
}

TEST_CASE("init: the default generator serves modules built without one") {
  manual_seed(123);
  const Linear layer(3, 2, false);
  const std::vector<float> wanted = testing::numbers<float>(seed_result("linear_weights_seed123_three_3to2"));
  CHECK(layer.weight.to_vector<float>() == std::vector<float>(wanted.begin(), wanted.begin() + 6));
}

TEST_CASE("init: Embedding draws normals by the scalar and by the block algorithm") {
  Generator a(123), b(123);
  CHECK(equal(Embedding(3, 5, a).weight.detach(), randn({3, 5}, b)));  // 15 values
  CHECK(equal(Embedding(7, 4, a).weight.detach(), randn({7, 4}, b)));  // 28 values
}

TEST_CASE("init: the row of padding_idx is zero and draws its numbers all the same") {
  Generator a(5), b(5);
  const Embedding padded(4, 3, a, 1), plain(4, 3, b);
  CHECK(padded.weight[1].to_vector<float>() == std::vector<float>{0, 0, 0});
  CHECK(equal(padded.weight[2].detach(), plain.weight[2].detach()));
  CHECK(refusal<ShapeError>([&] { Embedding(4, 3, a, 4); }) == "Embedding: padding_idx is outside the table: 4 of 4 rows");
  CHECK(refusal<ShapeError>([&] { Embedding(4, 3, a, -5); }).starts_with("Embedding: padding_idx "));
}

TEST_CASE("init: SkipInit leaves the values and ends the stream where it would have ended") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const int64_t n : {1, 15, 16, 17, 32, 1000, 1007}) {
      Generator drawing(3), skipping(3);
      Tensor drawn = zeros({n}, dtype), skipped = zeros({n}, dtype);
      const auto draw = [](Tensor& x, Generator& g) {
        init::uniform_(x, -1, 1, g);
        if (x.numel() >= 16) init::normal_(x, 0, 1, g);
      };
      draw(drawn, drawing);
      {
        const init::SkipInit skip;
        draw(skipped, skipping);
      }
      INFO("n = ", n);
      CHECK(equal(skipped, zeros({n}, dtype)));
      CHECK(skipping.drawn() == drawing.drawn());
      CHECK(skipping.u32() == drawing.u32());
      init::normal_(skipped, 0, 1, skipping);
      CHECK(!equal(skipped, zeros({n}, dtype)));
    }
  }
}

TEST_CASE("init: bounds and moments") {
  Generator generator(11);
  Tensor weight = empty({200, 50}, DType::float64);
  init::kaiming_uniform_(weight, 0.0, generator);
  const double bound = std::sqrt(6.0 / 50);
  CHECK(max(abs(weight)).item() <= bound);
  CHECK(max(abs(weight)).item() > 0.999 * bound);
  init::uniform_(weight, 2.0, 3.0, generator);
  CHECK(mean(weight).item() == doctest::Approx(2.5).epsilon(0.01));
  init::normal_(weight, -1.0, 0.02, generator);
  CHECK(mean(weight).item() == doctest::Approx(-1).epsilon(0.001));
  CHECK(std::sqrt(var(weight).item()) == doctest::Approx(0.02).epsilon(0.05));
}

TEST_CASE("init: a leaf that requires grad is written without being recorded") {
  Generator generator(11);
  Tensor weight = empty({2, 2}).requires_grad_();
  init::uniform_(weight, 0, 1, generator);
  CHECK(weight.is_leaf());
  CHECK(weight.requires_grad());
}

TEST_CASE("init: errors say what is wrong") {
  Tensor strided = empty({2, 3}).t(), integers = empty({2}, DType::int64), vector = empty({3});
  CHECK(refusal<ShapeError>([&] { init::uniform_(strided); }) == "uniform_: needs a contiguous tensor: strides are [1, 3]");
  CHECK(refusal<DTypeError>([&] { init::normal_(integers); }).starts_with("normal_: "));
  CHECK(refusal<ShapeError>([&] { init::kaiming_uniform_(vector); }) ==
        "kaiming_uniform_: needs a weight [out, in, ...]: got [3]");
}

}  // namespace
}  // namespace onestep::nn
