// Functions made of formulas: float32 results are near those of double, with the same bits wherever an element lies, and the
// rest of a division is that of the C library.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "autograd/portable_math.h"
#include "tests/autograd/kernels/kernel_testing.h"

using namespace onestep;
using kernels::testing::Floats;
using kernels::testing::random_floats;
using kernels::testing::ulp_error;

namespace {

/// Numbers of all sizes and signs, most of them where functions do something.
Floats arguments() {
  Floats x = {0.0f,
              -0.0f,
              1.0f,
              -1.0f,
              0.5f,
              2.0f,
              88.9f,
              -104.5f,
              1e-40f,
              -1e-40f,
              3e38f,
              kernels::testing::kInfinity,
              -kernels::testing::kInfinity,
              kernels::testing::kNaN};
  for (const float size : {1.0f, 5.0f, 100.0f})
    for (const float v : random_floats(4099, -size, size)) x.push_back(v);
  for (uint64_t u = 0; u < (uint64_t{1} << 32); u += 1000003) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(u)));
  return x;
}

Tensor tensor_of(const Floats& x) { return from_values(x, static_cast<int64_t>(x.size())); }

void check_near(const char* name, double ulps, Tensor (*op)(const Tensor&), double (*want)(double)) {
  CAPTURE(std::string(name));
  const Floats x = arguments(), y = op(tensor_of(x)).to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (ulp_error(y[i], want(static_cast<double>(x[i]))) > ulps) FAIL_CHECK(x[i] << " gives " << y[i]);
    if (i % 501 != 0) continue;
    const auto alone = op(tensor_of({x[i]})).item<float>();
    CHECK(std::bit_cast<uint32_t>(alone) == std::bit_cast<uint32_t>(y[i]));
  }
}

}  // namespace

// The bounds hold for all 2^32 floats.
TEST_CASE("vectorized: float32 results are near those of double, alone and among others") {
  check_near("exp2", 1.02, exp2, portable::exp2);
  check_near("expm1", 1.25, expm1, portable::expm1);
  check_near("log1p", 1.4, log1p, portable::log1p);
  check_near("log2", 1.1, log2, portable::log2);
  check_near("log10", 1.1, log10, portable::log10);
  check_near("sinh", 1.65, sinh, portable::sinh);
  check_near("cosh", 1.5, cosh, portable::cosh);
  check_near("asinh", 1.8, asinh, portable::asinh);
  check_near("acosh", 2.25, acosh, portable::acosh);
  check_near("atanh", 2.1, atanh, portable::atanh);
  check_near("asin", 1.15, asin, portable::asin);
  check_near("acos", 1.15, acos, portable::acos);
  check_near("atan", 1.5, atan, portable::atan);
  check_near("erfc", 2, erfc, portable::erfc);
  check_near("erfinv", 2.1, erfinv, portable::erfinv);
  check_near("tanhshrink", 0.51, tanhshrink, [](double v) { return v - portable::tanh(v); });
  check_near("logsigmoid", 2, logsigmoid,
             [](double v) { return (v < 0 ? v : 0) - portable::log1p(portable::exp(-std::fabs(v))); });
}

TEST_CASE("vectorized: the rest of a division is exact for quotients of any size") {
  const Floats some = arguments();
  const Floats divisors = {
      1.0f, -0.7f, 3.3e-3f, 1e-30f, 1e-40f, 2.5e9f, 0.0f, kernels::testing::kInfinity, kernels::testing::kNaN};
  const Tensor a = tensor_of(some);
  for (const float b : divisors) {
    CAPTURE(b);
    const Floats rest = fmod(a, tensor_of({b})).to_vector<float>(), above = remainder(a, tensor_of({b})).to_vector<float>();
    for (size_t i = 0; i < some.size(); ++i) {
      const float want = std::fmod(some[i], b);
      CHECK(ulp_error(rest[i], want) == 0);
      CHECK(std::signbit(rest[i]) == std::signbit(want));
      CHECK(ulp_error(above[i], want != 0 && (want < 0) != (b < 0) ? want + b : want) == 0);
    }
  }
  CHECK(floor_divide(tensor_of({-7, 7, 1, 0.3f}), tensor_of({2, -2, 0, 0.1f})).to_vector<float>() ==
        Floats{-4, -4, kernels::testing::kInfinity, 3});
}
