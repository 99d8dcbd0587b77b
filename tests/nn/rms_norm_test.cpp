#include "nn/rms_norm.h"

#include <cmath>

#include "tests/nn/check.h"

namespace onestep::nn {
namespace {

using testing::check_against_pytorch;
using testing::refusal;

TEST_CASE("rms_norm: follows PyTorch") {
  check_against_pytorch("RMSNorm", [](Generator&) { return std::make_unique<RMSNorm>(5); });
}

TEST_CASE("rms_norm: is x over the root of its mean square in plain loops") {
  Generator g(5);
  const Tensor x = randn({3, 2, 4}, g, DType::float64), weight = randn({2, 4}, g, DType::float64);
  RMSNorm norm({2, 4}, 1e-2);
  norm.to(DType::float64);
  norm.load_state_dict({{"weight", weight}});
  const std::vector<double> in = x.to_vector<double>(), w = weight.to_vector<double>(), y = norm(x).to_vector<double>();
  for (size_t row = 0; row < 3; ++row) {
    double squares = 0;
    for (size_t i = 0; i < 8; ++i) squares += in[8 * row + i] * in[8 * row + i];
    const double root = std::sqrt(squares / 8 + 1e-2);
    for (size_t i = 0; i < 8; ++i) CHECK(std::abs(y[8 * row + i] - in[8 * row + i] / root * w[i]) < 1e-14);
  }
}

TEST_CASE("rms_norm: without eps a row of zeros stays zero") {
  CHECK(equal(RMSNorm(4)(zeros({2, 4})).detach(), zeros({2, 4})));
  const Tensor tiny = full({1, 4}, 1e-10, DType::float64);  // its mean square is far below the smallest float32 eps
  RMSNorm norm(4);
  norm.to(DType::float64);
  CHECK(norm(tiny).detach()[0][0].item() == doctest::Approx(1e-10 / std::sqrt(1e-20 + 0x1p-52)));
}

TEST_CASE("rms_norm: wrong sizes are named and it prints as PyTorch prints") {
  CHECK(refusal<ShapeError>([] { RMSNorm(Shape{}); }) == "RMSNorm: normalized_shape needs at least one size");
  CHECK(refusal<ShapeError>([] {
          RMSNorm(Shape{3, 4})(ones({4}));
        }) == "RMSNorm: normalized_shape [3, 4] is not the end of shape [4]");
  CHECK(refusal<ShapeError>([] { RMSNorm(Shape{4})(ones({4, 3})); }).starts_with("RMSNorm: normalized_shape [4] "));
  CHECK(RMSNorm({3}).repr() == RMSNorm(3).repr());
  CHECK(RMSNorm({2, 4}).weight.shape() == Shape{2, 4});
  CHECK(RMSNorm({2, 4}, 1e-5, false).repr() == testing::golden("modules.json").at("printed").at("RMSNorm plain"));
}

}  // namespace
}  // namespace onestep::nn
