#include "nn/feed_forward.h"

#include <cmath>

#include "tests/nn/check.h"

namespace onestep::nn {
namespace {

TEST_CASE("feed_forward: SwiGLU follows PyTorch") {
  testing::check_against_pytorch("SwiGLU", [](Generator& g) { return std::make_unique<SwiGLU>(5, 7, false, g); });
}

TEST_CASE("feed_forward: SwiGLU is a gated sum in plain loops") {
  Generator g(9);
  SwiGLU layer(3, 4, true, g);
  layer.to(DType::float64);
  const Tensor x = randn({3}, g, DType::float64);
  const auto product = [](const Linear& linear, const std::vector<double>& in) {
    std::vector<double> out = linear.bias.to_vector<double>();
    const std::vector<double> w = linear.weight.to_vector<double>();
    for (size_t i = 0; i < out.size(); ++i)
      for (size_t j = 0; j < in.size(); ++j) out[i] += w[i * in.size() + j] * in[j];
    return out;
  };
  std::vector<double> gate = product(layer.gate_proj, x.to_vector<double>());
  const std::vector<double> up = product(layer.up_proj, x.to_vector<double>());
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  const std::vector<double> wanted = product(layer.down_proj, gate), y = layer(x).to_vector<double>();
  REQUIRE(y.size() == 3);
  for (size_t i = 0; i < y.size(); ++i) CHECK(std::abs(y[i] - wanted[i]) < 1e-14);
}

}  // namespace
}  // namespace onestep::nn
