// Scores of +-10000, whose exponentials are infinite or 0 in float32 and float64, give finite results and gradients.
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"

namespace onestep {
namespace {

// exp(-1) / (1 + exp(-1)) and the like: what softmax of {10000, 9999, -10000, 0} comes to.
const double kFirst = 1 / (1 + std::exp(-1.0)), kSecond = 1 - kFirst;

Tensor logits(DType dtype) { return tensor({{1e4, 9999.0, -1e4, 0.0}, {-1e4, -1e4, -1e4, -1e4}}).to(dtype).requires_grad_(); }

void check_near(const Tensor& got, const std::vector<double>& want) {
  const std::vector<double> values = got.to_vector<double>();
  REQUIRE(values.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) CHECK(std::abs(values[i] - want[i]) <= 1e-6 * std::max(1.0, std::abs(want[i])));
}

}  // namespace

TEST_CASE("overflow: softmax and log_softmax of large scores") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    Tensor x = logits(dtype);
    check_near(softmax(x, -1), {kFirst, kSecond, 0, 0, 0.25, 0.25, 0.25, 0.25});
    sum(softmax(x, -1).select(1, 0)).backward();
    check_near(x.grad(), {kFirst * kSecond, -kFirst * kSecond, 0, 0, 0.1875, -0.0625, -0.0625, -0.0625});
    x.zero_grad();
    const double rest = -std::log(kFirst), quarter = -std::log(4.0);
    check_near(log_softmax(x, -1), {-rest, -1 - rest, -2e4 - rest, -1e4 - rest, quarter, quarter, quarter, quarter});
    sum(log_softmax(x, -1).select(1, 2)).backward();
    check_near(x.grad(), {-kFirst, -kSecond, 1, 0, -0.25, -0.25, 0.75, -0.25});
  }
}

TEST_CASE("overflow: logsumexp of large scores") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Tensor x = logits(dtype), y = logsumexp(x, {1});
    check_near(y, {1e4 - std::log(kFirst), -1e4 + std::log(4.0)});
    sum(y).backward();
    check_near(x.grad(), {kFirst, kSecond, 0, 0, 0.25, 0.25, 0.25, 0.25});
  }
}

TEST_CASE("overflow: cross_entropy of large logits") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Tensor x = logits(dtype);
    const Tensor loss = cross_entropy(x, tensor({2, 3}), {.reduction = Reduction::sum});
    check_near(loss, {2e4 - std::log(kFirst) + std::log(4.0)});
    loss.backward();
    check_near(x.grad(), {kFirst, kSecond, -1, 0, 0.25, 0.25, 0.25, -0.75});
    const Tensor certain = cross_entropy(tensor({{1e4, -1e4}}).to(dtype), tensor({0}));
    CHECK(certain.item() == 0);
  }
}

TEST_CASE("overflow: attention with large scores sees the largest") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Tensor q = tensor({{100.0}, {-100.0}}).to(dtype).requires_grad_();
    const Tensor k = tensor({{100.0}, {-100.0}, {0.0}}).to(dtype).requires_grad_();
    const Tensor v = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}).to(dtype).requires_grad_();
    const Tensor y = scaled_dot_product_attention(q, k, v, {.scale = 1.0});
    check_near(y, {1, 2, 3, 4});
    sum(y * y).backward();
    check_near(q.grad(), {0, 0});
    check_near(k.grad(), {0, 0, 0});
    check_near(v.grad(), {2, 4, 6, 8, 0, 0});
  }
}

}  // namespace onestep
