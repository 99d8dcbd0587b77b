#include "autograd/testing/gradcheck.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "autograd/ops.h"

namespace onestep {
namespace {

using Inputs = std::vector<Tensor>;

Tensor leaf(const Shape& shape, double first = -1.3, double step = 0.37) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(first + step * static_cast<double>(i));
  return from_values(values, shape).requires_grad_();
}

/// scale * x^2, whose rule computes the derivative of assumed * x^2.
Tensor scaled_square(const Tensor& x, double scale, double assumed) {
  const Tensor values = x.detach();
  return record("scaled_square", mul(mul(values, values), full({}, scale, DType::float64)), {x}, {x},
                [assumed](const Backward& b) -> Grads {
                  return {mul(mul(b.grad(), b.saved(0)), full({}, 2 * assumed, DType::float64))};
                });
}

TEST_CASE("gradcheck: right rules come out exact to 1e-9") {
  const GradcheckResult square = gradcheck([](const Inputs& x) { return mul(x[0], x[0]); }, {leaf({2, 3})});
  CHECK(square.passed);
  CHECK(square.worst_error < 1e-9);
  CHECK(square.derivatives == 36);
  CHECK(square.message.empty());
  const GradcheckResult two = gradcheck([](const Inputs& x) { return exp(mul(x[0], x[1])); }, {leaf({2, 3}), leaf({3}, 0.2)});
  CHECK(two.passed);
  CHECK(two.worst_error < 1e-9);
  CHECK(two.derivatives == 36 + 18);
}

TEST_CASE("gradcheck: names the worst derivative") {
  const GradcheckResult result =
      gradcheck([](const Inputs& x) { return add(scaled_square(x[0], 1, 1), scaled_square(x[1], 1, 1.5)); },
                {leaf({3}), tensor({1.0, -2.0, 0.5}, DType::float64).requires_grad_()});
  CHECK_FALSE(result.passed);
  CHECK(result.input == 1);
  CHECK(result.element == result.output);
  CHECK(result.worst_error == doctest::Approx(1.0 / 3));
  CHECK(result.message ==
        "gradcheck: input 1, element 1, output 1: backward() gives -6, finite differences -4 (relative error "
        "0.333333333333)");
}

TEST_CASE("gradcheck: small mistakes are seen") {
  const auto error = [](double assumed) {
    return gradcheck([=](const Inputs& x) { return scaled_square(x[0], 1, assumed); }, {leaf({4})});
  };
  CHECK(error(1).passed);
  CHECK_FALSE(error(1 + 1e-5).passed);
  CHECK(error(1 + 1e-5).worst_error == doctest::Approx(1e-5).epsilon(0.01));
  CHECK_FALSE(error(-1).passed);
  CHECK_FALSE(error(0).passed);
  CHECK_FALSE(error(std::numeric_limits<double>::quiet_NaN()).passed);
}

TEST_CASE("gradcheck: large inputs are checked along random directions") {
  const Tensor x = leaf({40, 50}, -1.0, 0.001);
  const auto run = [&](double assumed) {
    return gradcheck([=](const Inputs& in) { return scaled_square(in[0], 3, assumed); }, {x});
  };
  const GradcheckResult right = run(3);
  CHECK(right.passed);
  CHECK(right.worst_error < 1e-9);
  CHECK(right.derivatives == 8);
  CHECK(right.element == -1);
  const GradcheckResult wrong = run(3.001);
  CHECK_FALSE(wrong.passed);
  CHECK(wrong.message.find("gradcheck: input 0, a random direction: backward() gives ") == 0);
}

TEST_CASE("gradcheck: inputs that need no gradient and zero-size inputs") {
  const Tensor mask = tensor({true, false, true});
  const GradcheckResult masked = gradcheck([](const Inputs& x) { return masked_fill(x[0], x[1], -1.0); }, {leaf({2, 3}), mask});
  CHECK(masked.passed);
  CHECK(masked.derivatives == 36);
  const GradcheckResult nothing = gradcheck([](const Inputs& x) { return neg(x[0]); }, {leaf({0, 3})});
  CHECK(nothing.passed);
  CHECK(nothing.derivatives == 0);
  const GradcheckResult empty_sum = gradcheck([](const Inputs& x) { return sum(x[0]); }, {leaf({0})});
  CHECK(empty_sum.passed);
  CHECK(gradcheck([](const Inputs& x) { return mean(x[0]); }, {leaf({0})}).passed);  // NaN, but of no derivative
  // A result that does not depend on the input has gradient zero; one that does, but was not recorded, fails.
  CHECK(gradcheck([](const Inputs&) { return zeros({2}, DType::float64); }, {leaf({2})}).passed);
  CHECK_FALSE(gradcheck([](const Inputs& x) { return neg(x[0].detach()); }, {leaf({2})}).passed);
  CHECK(gradcheck([](const Inputs& x) { return x[0]; }, {leaf({2})}).passed);
}

TEST_CASE("gradcheck: the inputs and their gradients stay as they were") {
  const Tensor x = leaf({3});
  sum(mul(x, x)).backward();
  const std::vector<double> values = x.to_vector<double>(), grad = x.grad().to_vector<double>();
  const uint32_t version = x.version();
  CHECK(gradcheck([](const Inputs& in) { return exp(in[0]); }, {x}).passed);
  CHECK(x.to_vector<double>() == values);
  CHECK(x.grad().to_vector<double>() == grad);
  CHECK(x.version() == version);
}

TEST_CASE("gradcheck: large and small magnitudes") {
  CHECK(gradcheck([](const Inputs& x) { return mul(x[0], x[0]); }, {leaf({3}, 1e8, 3e7)}).passed);
  CHECK(gradcheck([](const Inputs& x) { return mul(x[0], full({}, 1e-12, DType::float64)); }, {leaf({3})}).passed);
  CHECK_FALSE(gradcheck([](const Inputs& x) { return scaled_square(x[0], 1e-12, 2e-12); }, {leaf({3})}).passed);
}

TEST_CASE("gradcheck: functions that are not functions of their inputs") {
  int64_t calls = 0;
  const GradcheckResult drawn = gradcheck(
      [&](const Inputs& x) { return mul(x[0], full({}, static_cast<double>(++calls), DType::float64)); }, {leaf({2})});
  CHECK_FALSE(drawn.passed);
  CHECK(drawn.message == "gradcheck: f gave different values for the same inputs (does it draw random numbers?)");
  const auto wandering = [&](const Inputs& x) {
    int64_t* const count = &calls;
    return record("wandering", x[0].clone().detach(), {x[0]}, {}, [count](const Backward& b) -> Grads {
      return {mul(b.grad(), full({}, static_cast<double>(++*count), DType::float64))};
    });
  };
  CHECK(gradcheck(wandering, {leaf({2})}).message == "gradcheck: backward() gave different gradients for the same inputs");
  const auto infinite = [](const Inputs& x) { return mul(x[0], full({}, HUGE_VAL, DType::float64)); };
  CHECK(gradcheck(infinite, {leaf({2})}).message == "gradcheck: f is not finite at these inputs");
}

TEST_CASE("gradcheck: refusals") {
  const auto same = [](const Inputs& x) { return x[0]; };
  CHECK_THROWS_WITH_AS(gradcheck(same, {ones({2}).requires_grad_()}),
                       "gradcheck: input 0 is float32 (finite differences need float64: make it with DType::float64)",
                       DTypeError);
  CHECK_THROWS_WITH_AS(gradcheck(same, {ones({2}, DType::float64)}),
                       "gradcheck: none of 1 inputs requires grad (call requires_grad_() on those to check)", GradError);
  CHECK_THROWS_WITH_AS(gradcheck([](const Inputs&) { return ones({2}); }, {leaf({2})}),
                       "gradcheck: f returned float32 (finite differences need float64)", DTypeError);
}

/// x^3 with the right rule, which is a constant for a second derivative unless `placed`.
Tensor cube(const Tensor& x, bool placed) {
  return record("cube", pow(x.detach(), 3), {x}, {x}, [placed](const Backward& b) -> Grads {
    return {b.grad() * 3 * pow(placed ? b.saved(0) : b.saved(0).detach(), 2)};
  });
}

TEST_CASE("gradgradcheck: the derivatives of a gradient, by the inputs and by what arrives") {
  const GradcheckResult right =
      gradgradcheck([](const Inputs& x) { return cube(x[0], true) * x[1]; }, {leaf({3}), leaf({3}, 0.4)});
  CHECK(right.passed);
  CHECK(right.worst_error < 1e-8);
  CHECK(right.derivatives == 6 * (3 + 3 + 3));
  const auto wrong = [](const Inputs& x) { return cube(x[0], false); };
  CHECK(gradcheck(wrong, {leaf({3})}).passed);
  const GradcheckResult result = gradgradcheck(wrong, {leaf({3})});
  CHECK_FALSE(result.passed);
  CHECK(result.input == 0);
  CHECK(result.message.starts_with("gradgradcheck: input 0, element "));
}

TEST_CASE("gradgradcheck: inputs that need no gradient, linear functions and functions without influence") {
  const Tensor mask = tensor({true, false, true});
  CHECK(gradgradcheck([](const Inputs& x) { return exp(masked_fill(x[0], x[1], -1.0)); }, {leaf({2, 3}), mask}).passed);
  CHECK(gradgradcheck([](const Inputs& x) { return sum(x[0], 0); }, {leaf({2, 3})}).passed);
  CHECK(gradgradcheck([](const Inputs& x) { return exp(x[1]); }, {leaf({2}), leaf({2})}).passed);
  CHECK(gradgradcheck([](const Inputs&) { return zeros({2}, DType::float64); }, {leaf({2})}).passed);
  CHECK(gradgradcheck([](const Inputs& x) { return exp(x[0]); }, {leaf({0, 3})}).passed);
  CHECK_THROWS_WITH_AS(gradgradcheck([](const Inputs& x) { return x[0]; }, {ones({2}, DType::float64)}),
                       doctest::Contains("gradgradcheck: "), GradError);
}

}  // namespace
}  // namespace onestep
