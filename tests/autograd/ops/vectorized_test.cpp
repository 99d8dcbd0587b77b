// Functions made of formulas: float32 results are near those of double, with the same bits wherever an element lies, and the
// rest of a division is that of the C library.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "autograd/ops.h"
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

struct Function {
  const char* name;
  Tensor (*op)(const Tensor&);
  double limit;  ///< ulp; the worst over all 2^32 floats is a little below
};

const Function kFunctions[] = {
    {"exp2", exp2, 0.97},
    {"expm1", expm1, 1.29},
    {"log1p", log1p, 1.42},
    {"sinh", sinh, 1.63},
    {"cosh", cosh, 1.48},
    {"asinh", asinh, 1.81},
    {"acosh", acosh, 2.42},
    {"atanh", atanh, 2.1},
    {"asin", asin, 1.15},
    {"acos", acos, 1.15},
    {"atan", atan, 1.47},
    {"erfinv", erfinv, 2.1},
    {"tanhshrink", tanhshrink, 2.35},
    {"logsigmoid", logsigmoid, 2},
    {"lgamma", lgamma, 0.51},
    {"digamma", digamma, 0.51},
    {"entr", entr, 0.51},
    {"erfcx", erfcx, 0.51},
    {"ndtr", ndtr, 0.51},
    {"log_ndtr", log_ndtr, 0.51},
    {"ndtri", ndtri, 0.51},
    {"i0", i0, 0.51},
    {"i0e", i0e, 0.51},
    {"i1", i1, 0.51},
    {"i1e", i1e, 0.51},
};

struct Worst {
  double error = 0;
  float x = 0;
};

/// The worst error of float32 results against those of float64.
Worst worst_error(const Function& f, const Floats& x, const Floats& y) {
  const std::vector<double> want = f.op(tensor_of(x).to(DType::float64)).to_vector<double>();
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulp_error(y[i], want[i]);
    if (error > worst.error) worst = {error, x[i]};
  }
  return worst;
}

}  // namespace

TEST_CASE("vectorized: float32 results are near those of float64, alone and among others") {
  const Floats x = arguments();
  for (const Function& f : kFunctions) {
    CAPTURE(std::string(f.name));
    const Floats y = f.op(tensor_of(x)).to_vector<float>();
    const Worst worst = worst_error(f, x, y);
    CAPTURE(worst.x);
    CHECK(worst.error <= f.limit);
    for (size_t i = 0; i < x.size(); i += 501)
      CHECK(std::bit_cast<uint32_t>(f.op(tensor_of({x[i]})).item<float>()) == std::bit_cast<uint32_t>(y[i]));
  }
}

TEST_CASE("nightly: formulas over all floats are within their limits") {
  constexpr uint64_t count = uint64_t{1} << 22;
  for (const Function& f : kFunctions) {
    Worst worst;
    for (uint64_t first = 0; first < uint64_t{1} << 32; first += count) {
      Floats x;
      for (uint64_t u = first; u < first + count; ++u) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(u)));
      const Worst here = worst_error(f, x, f.op(tensor_of(x)).to_vector<float>());
      if (here.error > worst.error) worst = here;
    }
    std::printf("%-10s worst %.4f ulp at %a\n", f.name, worst.error, static_cast<double>(worst.x));
    std::fflush(stdout);
    CHECK_MESSAGE(worst.error <= f.limit, std::string(f.name));
  }
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

TEST_CASE("vectorized: x - tanh(x) loses nothing where the two are nearly equal") {
  std::vector<double> x = {0, 1e-90, 1e-8, 1e-4, 0.01, 0.3, 0.999999, 1, 1.000001, 1.25, 3};
  for (size_t i = x.size(); i-- > 0;) x.push_back(-x[i]);
  const std::vector<double> y = tanhshrink(from_values(x, static_cast<int64_t>(x.size()))).to_vector<double>();
  for (size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    double tail = 0;  // Lambert's continued fraction: tanh(x) = x / (1 + tail)
    for (int k = 41; k >= 3; k -= 2) tail = x[i] * x[i] / (k + tail);
    const double want = x[i] * (tail / (1 + tail));
    CHECK(std::abs(y[i] - want) <= 1.5e-15 * std::abs(want));
    CHECK(std::signbit(y[i]) == (x[i] < 0));
  }
}
