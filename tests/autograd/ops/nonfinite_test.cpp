// Gradients at NaN and infinity, as PyTorch 2.13 gives them.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "autograd/ops.h"

namespace onestep {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
using Doubles = std::vector<double>;

/// The gradient of the sum of op(values [n]), NaN equal to NaN.
void check_gradient(const Doubles& values, const Doubles& want, const std::function<Tensor(const Tensor&)>& op) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Tensor x = from_values(values, static_cast<int64_t>(values.size())).to(dtype).requires_grad_();
    sum(op(x)).backward();
    CHECK_MESSAGE(allclose(x.grad().to(DType::float64), from_values(want, static_cast<int64_t>(want.size())), 1e-6, 0, true),
                  "got ", to_string(x.grad()));
  }
}

}  // namespace

TEST_CASE("nonfinite: the gradient of max goes to NaN, that of amax becomes NaN") {
  const auto largest = [](const Tensor& x) { return max(x); };
  check_gradient({1, kNaN, 3}, {0, 1, 0}, largest);
  check_gradient({kNaN, kNaN, 3}, {0.5, 0.5, 0}, largest);
  check_gradient({1, kInf, kInf}, {0, 0.5, 0.5}, largest);
  check_gradient({3, 1, 3}, {0.5, 0, 0.5}, largest);
  check_gradient({1, kNaN, 3}, {kNaN, kNaN, kNaN}, [](const Tensor& x) { return amax(x, {0}); });
}

TEST_CASE("nonfinite: abs has no gradient at NaN") {
  check_gradient({kNaN, -kInf, kInf, -1, 0, 2}, {0, -1, 1, -1, 0, 1}, [](const Tensor& x) { return abs(x); });
}

TEST_CASE("nonfinite: activations at NaN and infinity") {
  check_gradient({kNaN, -kInf, kInf, 0.5}, {1, 0, 0, 1}, [](const Tensor& x) { return hardtanh(x); });
  check_gradient({kNaN, -kInf, kInf, 0.5}, {1, 0, 0, 1}, [](const Tensor& x) { return relu6(x); });
  check_gradient({kNaN, -kInf, kInf, 0}, {1, 0, 1, 0.5}, [](const Tensor& x) { return hardswish(x); });
  check_gradient({kNaN, -kInf, kInf, 0, 800}, {kNaN, kNaN, kNaN, 0.6, 1}, [](const Tensor& x) { return mish(x); });
}

TEST_CASE("nonfinite: a gradient of 0 or infinity beside an infinite derivative or a derivative of 0") {
  check_gradient({800, 0}, {kNaN, 0}, [](const Tensor& x) { return cosh(x) * 0; });
  check_gradient({800, 0}, {kNaN, 0}, [](const Tensor& x) { return sinh(x) * 0; });
  check_gradient({0}, {0}, [](const Tensor& x) { return sinc(x) * kInf; });
  check_gradient({2, 0, 3, 0}, {1, kInf, 0, 0}, [](const Tensor& x) {  // the last three gradients are infinite
    return cumprod(x, 0) * tensor({1.0, kInf, kInf, kInf}).to(x.dtype());
  });
  check_gradient({0, 0}, {kNaN, kNaN}, [](const Tensor& x) { return norm(x) * kNaN; });
  check_gradient({1, 3}, {kNaN, kInf}, [](const Tensor& x) { return amax(x) * kInf; });
  check_gradient({1, 3}, {0, kInf}, [](const Tensor& x) { return max(x) * kInf; });
}

TEST_CASE("nonfinite: beside an infinity logsumexp gives what is finite no gradient") {
  const auto op = [](const Tensor& x) { return logsumexp(x, {0}); };
  check_gradient({kInf, 1}, {kNaN, 0}, op);
  check_gradient({kInf, -kInf, kInf}, {kNaN, 0, kNaN}, op);
  check_gradient({kInf, kNaN, 1}, {kNaN, kNaN, kNaN}, op);
  check_gradient({kNaN, 1}, {kNaN, kNaN}, op);
  check_gradient({-kInf, -kInf}, {kNaN, kNaN}, op);
  check_gradient({-kInf, 1}, {0, 1}, op);
}

TEST_CASE("nonfinite: the gradient of a variance without degrees of freedom") {
  const auto over = [](const Shape& dims, double correction) {
    return [=](const Tensor& x) { return var(x, dims, correction); };
  };
  check_gradient({1, 2, 4}, {kInf, kInf, kInf}, over({}, 3));
  check_gradient({1, 2, 4}, {kInf, kInf, kInf}, over({}, 5));
  check_gradient({1, 2, 3}, {kInf, kNaN, kInf}, over({}, 4));
  check_gradient({1, 2, 4}, {-kInf, -kInf, kInf}, over({0}, 3));
  check_gradient({1, 2, 4}, {8.0 / 3, 2.0 / 3, -10.0 / 3}, over({0}, 4));
}

TEST_CASE("nonfinite: max pooling finds the same values with places and without") {
  const NoGradGuard no_grad;
  const Tensor x = tensor({{{kNaN, 1.0, -kInf, -kInf, 2.0, 3.0, kNaN}, {-0.0, 0.0, kInf, kNaN, -kInf, -kInf, -kInf}}});
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16})
    for (const int64_t stride : {1, 2, 3})
      for (const int64_t dilation : {1, 2}) {
        const Tensor row = x.to(dtype), plane = unsqueeze(row, 0);
        const auto same = [](const Tensor& a, const Tensor& b) { CHECK(to_string(a) == to_string(b)); };  // also of NaN, -0
        same(max_pool1d(row, 3, stride, 1, dilation), max_pool1d_with_indices(row, 3, stride, 1, dilation).values);
        same(max_pool2d(plane, 2, stride, 1, dilation), max_pool2d_with_indices(plane, 2, stride, 1, dilation).values);
      }
}

}  // namespace onestep
