// Accuracy of the elementary functions over all of float32, in ulp against the kernels in double.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "autograd/kernels/interval_tables.h"
#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep::kernels {
namespace {

using namespace testing;

struct Function {
  std::string name;
  void (*narrow)(const float*, float*, int64_t);
  void (*wide)(const double*, double*, int64_t);
  double limit;  ///< ulp; the worst over all 2^32 floats is a little below
};

const Function kFunctions[] = {
    {"exp", exp, exp, 1.01},
    {"log", log, log, 0.84},
    {"log2", log2, log2, 0.99},
    {"log10", log10, log10, 0.86},
    {"tan", tan, tan, 1.37},
    {"tanh", tanh, tanh, 0.89},
    {"erf", erf, erf, 1.05},
    {"erfc", erfc, erfc, 1.89},
    {"sigmoid", sigmoid, sigmoid, 1.7},
    {"silu", silu, silu, 1.78},
    {"gelu_tanh", gelu_tanh, gelu_tanh, 1.9},
    {"gelu_erf", gelu_erf, gelu_erf, 1.84},
    {"sin", sin, sin, 1.59},
    {"cos", cos, cos, 1.59},
    {"sqrt", sqrt, sqrt, 0.5},
    {"rsqrt", rsqrt, rsqrt, 1.5},
};

constexpr uint64_t kBitPatterns = uint64_t{1} << 32;

/// The floats of the bit patterns first, first + stride, ... before `end`.
Floats floats_of(uint64_t first, uint64_t end, uint64_t stride) {
  Floats x;
  x.reserve((end - first) / stride + 1);
  for (uint64_t u = first; u < end; u += stride) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(u)));
  return x;
}

/// Bit patterns `stride` apart: every sign and exponent, subnormals, infinities and NaN among them.
Floats every_float(uint64_t stride) { return floats_of(0, kBitPatterns, stride); }

Floats values_of(const Function& f, const Floats& x) {
  Floats y(x.size());
  f.narrow(x.data(), y.data(), static_cast<int64_t>(x.size()));
  return y;
}

struct Worst {
  double error = 0;
  float x = 0;
};

Worst worst_error(const Function& f, const Floats& x, const Floats& y) {
  Doubles want(x.size());
  f.wide(widened(x).data(), want.data(), static_cast<int64_t>(x.size()));
  Worst worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulp_error(y[i], want[i]);
    if (error > worst.error) worst = {error, x[i]};
  }
  return worst;
}

TEST_CASE("kernels: elementary functions are within their ulp limits") {
  const Floats x = every_float(20011);
  for (const Function& f : kFunctions) {
    CAPTURE(f.name);
    const Worst worst = worst_error(f, x, values_of(f, x));
    CAPTURE(worst.x);
    CHECK(worst.error <= f.limit);
  }
}

/// Checks some functions' limits at x, where others would not look.
void check_limits(std::initializer_list<const char*> names, const Floats& x) {
  for (const char* name : names) {
    CAPTURE(std::string(name));
    const Function& f = *std::ranges::find(kFunctions, name, &Function::name);
    const Worst worst = worst_error(f, x, values_of(f, x));
    CAPTURE(worst.x);
    CHECK(worst.error <= f.limit);
  }
}
void add_around(Floats& x, double place) {
  float v = static_cast<float>(place);
  for (int i = 0; i < 8; ++i) v = std::nextafter(v, -kInfinity);
  for (int i = 0; i < 16; ++i, v = std::nextafter(v, kInfinity)) x.push_back(v);
}

TEST_CASE("kernels: functions looked up by intervals are within their limits around the intervals' edges") {
  Floats x;
  for (int i = 0; i < 16; ++i) {
    add_around(x, 0.125 + 0.25 * i);  // of GELU
    for (const double width : {kTanh.width, kErf.width, kErfcx.width})
      add_around(x, width * (std::exp2(i / 4) * (4 + i % 4) - 4));
  }
  check_limits({"tanh", "erf", "erfc", "gelu_tanh", "gelu_erf"}, x);
}

TEST_CASE("kernels: trigonometric functions are within their limits around multiples of pi/2") {
  Floats x;
  for (int i = 1; i < 30000; ++i) add_around(x, i * std::numbers::pi / 2);
  check_limits({"sin", "cos", "tan"}, x);
}

/// The worst error over all floats; REQUIREs that every instruction set has the same bits.
Worst exhaust(const Function& f) {
  constexpr uint64_t count = uint64_t{1} << 22;
  const Settings restore;
  Worst worst;
  for (uint64_t first = 0; first < kBitPatterns; first += count) {
    const Floats x = floats_of(first, first + count, 1);
    set_isa(Isa::generic);
    const Floats y = values_of(f, x);
    for (const Isa isa : kAllIsas) {
      if (!isa_supported(isa)) continue;
      set_isa(isa);
      REQUIRE(first_difference(values_of(f, x), y) == -1);
    }
    const Worst here = worst_error(f, x, y);
    if (here.error > worst.error) worst = here;
  }
  return worst;
}

TEST_CASE("nightly: elementary functions over all floats are within their limits and the same on every instruction set") {
  for (const Function& f : kFunctions) {
    SUBCASE(f.name.c_str()) {
      const Worst worst = exhaust(f);
      std::printf("%-10s worst %.4f ulp at %a\n", f.name.c_str(), worst.error, static_cast<double>(worst.x));
      std::fflush(stdout);
      CHECK(worst.error <= f.limit);
    }
  }
}

TEST_CASE("kernels: the derivatives of GELU and SiLU are those of double precision") {
  using Narrow = void (*)(const float*, const float*, float*, int64_t);
  using Wide = void (*)(const double*, const double*, double*, int64_t);
  struct Derivative {
    std::string name;
    Narrow narrow;
    Wide wide;
    double limit;
  };
  const Derivative derivatives[] = {{"gelu_erf", gelu_erf_grad, gelu_erf_grad, 1e-7},
                                    {"gelu_tanh", gelu_tanh_grad, gelu_tanh_grad, 1e-7},
                                    {"silu", silu_grad, silu_grad, 1e-6}};  // torch's formula: 1 - sigmoid(x) loses digits
  Floats x;
  for (float v = -20; v < 20; v += 0x1.1p-12f) x.push_back(v);
  const Floats ones(x.size(), 1);
  const Doubles wide_ones(x.size(), 1);
  for (const Derivative& d : derivatives) {
    Floats y(x.size());
    Doubles want(x.size());
    d.narrow(x.data(), ones.data(), y.data(), std::ssize(x));
    d.wide(widened(x).data(), wide_ones.data(), want.data(), std::ssize(x));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::fabs(static_cast<double>(y[i]) - want[i]));
    CAPTURE(d.name);
    CHECK(worst <= d.limit);
  }
}

TEST_CASE("kernels: elementary functions give the same bits on every instruction set") {
  const Floats x = every_float(100003);
  for (const Function& f : kFunctions) {
    CAPTURE(f.name);
    check_same_bits([&] { return values_of(f, x); });
  }
}

TEST_CASE("kernels: elementary functions of a number do not depend on what lies beside it") {
  const Floats x = every_float(100003);
  for (const float beside : {1.0f, -95.0f, 1e6f, kInfinity, kNaN}) {
    Floats mixed;
    for (const float v : x) mixed.insert(mixed.end(), {v, beside});
    for (const Function& f : kFunctions) {
      CAPTURE(f.name);
      CAPTURE(beside);
      const Floats with = values_of(f, mixed);
      Floats y;
      for (size_t i = 0; i < with.size(); i += 2) y.push_back(with[i]);
      CHECK(first_difference(values_of(f, x), y) == -1);
    }
  }
}

float at(void (*f)(const float*, float*, int64_t), float x) {
  float y;
  f(&x, &y, 1);
  return y;
}

TEST_CASE("kernels: special values of the elementary functions") {
  CHECK(at(exp, -kInfinity) == 0);
  CHECK(at(exp, kInfinity) == kInfinity);
  CHECK(at(exp, 0) == 1);
  CHECK(at(exp, 88.8f) == kInfinity);
  CHECK(at(exp, -103.9f) == 0x1p-149f);
  CHECK(at(exp, -104.0f) == 0);
  CHECK(at(log, 0) == -kInfinity);
  CHECK(at(log, -0.0f) == -kInfinity);
  CHECK(at(log, 1) == 0);
  CHECK(at(log, kInfinity) == kInfinity);
  CHECK(std::isnan(at(log, -1)));
  CHECK(at(tanh, kInfinity) == 1);
  CHECK(at(tanh, -kInfinity) == -1);
  CHECK(std::signbit(at(tanh, -0.0f)));
  CHECK(std::signbit(at(sin, -0.0f)));
  CHECK(std::signbit(at(erf, -0.0f)));
  CHECK(at(erf, -kInfinity) == -1);
  CHECK(at(sigmoid, -kInfinity) == 0);
  CHECK(at(sigmoid, kInfinity) == 1);
  CHECK(at(gelu_tanh, kInfinity) == kInfinity);
  CHECK(at(gelu_erf, kInfinity) == kInfinity);
  CHECK(at(silu, kInfinity) == kInfinity);
  CHECK(std::isnan(at(gelu_tanh, -kInfinity)));  // -inf * 0, as in torch
  CHECK(std::isnan(at(gelu_erf, -kInfinity)));
  CHECK(at(gelu_erf, -1e30f) == 0);
  CHECK(at(silu, -1e30f) == 0);
  CHECK(std::isnan(at(sin, kInfinity)));
  CHECK(at(cos, 0) == 1);
  for (const Function& f : kFunctions) {
    CAPTURE(f.name);
    CHECK(std::isnan(at(f.narrow, kNaN)));
  }
}

TEST_CASE("kernels: pow is correctly rounded almost always and has C's special cases") {
  const auto to_one = [](const Floats& x, float exponent) {
    Floats y(x.size());
    pow(x.data(), 1, &exponent, 0, y.data(), std::ssize(x));
    return y;
  };
  const Floats bases = random_floats(500, 0.001f, 60.0f, 3);
  for (const float exponent : {2.0f, 3.0f, 0.5f, -0.5f, -1.0f, -2.0f, 1.7f, -3.3f, 10.0f, 0.01f, 17.5f, 0.0f, 1.0f}) {
    CAPTURE(exponent);
    const Floats y = to_one(bases, exponent);
    for (size_t i = 0; i < y.size(); ++i) {
      const double want = std::pow(static_cast<double>(bases[i]), static_cast<double>(exponent));
      CHECK(ulp_error(y[i], want) <= (exponent == std::floor(exponent * 2) / 2 && std::fabs(exponent) <= 3 ? 1.6 : 0.5001));
    }
  }
  Floats x, exponents;  // usual and special ones side by side
  for (const float base :
       {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -0.5f, 2.0f, -2.0f, -8.0f, kInfinity, -kInfinity, kNaN, 1e-40f, -1e-45f, 3e38f, 7.25f})
    for (const float exponent : {0.0f, 1.0f, 3.0f, 4.0f, 5.0f, -3.0f, -4.0f, 0.3f, -0.3f, 1e10f, -1e10f, 8388609.0f,
                                 16777217.0f, 1e-30f, kInfinity, -kInfinity, kNaN}) {
      x.push_back(base);
      exponents.push_back(exponent);
    }
  const auto pairwise = [&] {
    Floats y(x.size());
    pow(x.data(), 1, exponents.data(), 1, y.data(), std::ssize(x));
    return y;
  };
  const Floats y = pairwise();
  for (size_t i = 0; i < y.size(); ++i) {
    CAPTURE(x[i]);
    CAPTURE(exponents[i]);
    const auto want = static_cast<double>(std::pow(x[i], exponents[i]));
    CHECK(ulp_error(y[i], want) <= 1);
    if (!std::isnan(want)) CHECK(std::signbit(y[i]) == std::signbit(want));
    if (std::floor(exponents[i] * 2) != exponents[i] * 2) CHECK(ulp_error(to_one({x[i]}, exponents[i])[0], want) <= 1);
  }
  check_same_bits(pairwise);
  check_same_bits([&] { return to_one(bases, 1.7f); });
}

}  // namespace
}  // namespace onestep::kernels
