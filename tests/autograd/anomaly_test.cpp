#include "autograd/anomaly.h"

#include <doctest/doctest.h>

#include <limits>

#include "autograd/ops.h"

using namespace onestep;

namespace {

std::string anomaly_of(void (*program)()) {
  const AnomalyGuard guard([] { return std::string("a test"); });
  try {
    program();
  } catch (const NonFiniteError& error) {
    return error.what();
  }
  return "";
}

Tensor leaf(std::initializer_list<NestedValues> values) { return tensor(values).requires_grad_(); }

}  // namespace

TEST_CASE("anomaly: the first op whose result is not finite is named") {
  CHECK(anomaly_of([] { exp(leaf({1.0, 2.0})); }) == "");
  CHECK(anomaly_of([] { sqrt(exp(leaf({1.0, 1000.0}) * 2.0)); }) == "exp in a test: its result of shape [2] is not finite");
  CHECK(anomaly_of([] { log(leaf({-1.0})); }).starts_with("log in a test: "));
}

TEST_CASE("anomaly: the first rule whose gradient is not finite is named") {
  CHECK(anomaly_of([] { sum(sqrt(leaf({1.0, 4.0}))).backward(); }) == "");
  CHECK(anomaly_of([] {
          sum(sqrt(leaf({0.0, 4.0}))).backward();
        }) == "backward of sqrt in a test: the gradient of its input 0 of shape [2] is not finite");
}

TEST_CASE("anomaly: masked_fill may give minus infinity and what is not recorded is not checked") {
  CHECK(anomaly_of([] {
          const Tensor scores = masked_fill(leaf({1.0, 2.0}), tensor({true, false}), -std::numeric_limits<double>::infinity());
          sum(softmax(scores, 0)).backward();
        }) == "");
  CHECK(anomaly_of([] { exp(tensor({1000.0})); }) == "");
}

TEST_CASE("anomaly: a guard ends with its scope and the one around it continues") {
  CHECK(AnomalyGuard::active() == nullptr);
  const AnomalyGuard outer([] { return std::string("outer"); });
  {
    const AnomalyGuard inner([] { return std::string("inner"); });
    CHECK_THROWS_WITH_AS(exp(leaf({1000.0})), doctest::Contains("exp in inner: "), NonFiniteError);
  }
  CHECK_THROWS_WITH_AS(exp(leaf({1000.0})), doctest::Contains("exp in outer: "), NonFiniteError);
}
