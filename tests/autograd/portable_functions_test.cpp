// The functions of portable_functions.cpp against the C library's, which are within an ulp themselves.
#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>

#include "autograd/portable_math.h"

using namespace onestep;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

/// Equal, both NaN, or at most `ulps` apart; zeros have the same sign.
bool near(double got, double want, double ulps) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (got == want) return std::signbit(got) == std::signbit(want);
  const double size = std::fabs(want);
  return std::fabs(got - want) <= ulps * (std::nextafter(size, kInfinity) - size);
}

void check(const char* name, double (*got)(double), double (*want)(double), double low, double high) {
  CAPTURE(std::string(name));
  for (int i = 0; i <= 20000; ++i) {
    const double x = low + (high - low) * (static_cast<double>(i) / 20000);
    if (!near(got(x), want(x), 8)) FAIL_CHECK(x << " gives " << got(x) << ", not " << want(x));
  }
  for (int power = -1074; power < 1024; power += 7) {
    for (const double x : {std::ldexp(1, power), -1.5 * std::ldexp(1, power)})
      if (!near(got(x), want(x), 8)) FAIL_CHECK(x << " gives " << got(x) << ", not " << want(x));
  }
  for (const double x : {0.0, -0.0, 1.0, -1.0, 2.0, 1000.0, -1000.0, 1e300, kInfinity, -kInfinity, kNaN})
    if (!near(got(x), want(x), 8)) FAIL_CHECK(x << " gives " << got(x) << ", not " << want(x));
}

}  // namespace

TEST_CASE("portable functions: within some ulp of the C library's") {
  check("exp", portable::exp, std::exp, -746, 710);
  check("exp2", portable::exp2, std::exp2, -1075, 1024);
  check("expm1", portable::expm1, std::expm1, -3, 3);
  check("log1p", portable::log1p, std::log1p, -1, 3);
  check("log2", portable::log2, std::log2, 0, 3);
  check("log10", portable::log10, std::log10, 0, 3);
  check("sinh", portable::sinh, std::sinh, -711, 711);
  check("cosh", portable::cosh, std::cosh, -711, 711);
  check("tanh", portable::tanh, std::tanh, -20, 20);
  check("asinh", portable::asinh, std::asinh, -3, 3);
  check("acosh", portable::acosh, std::acosh, 0, 4);
  check("atanh", portable::atanh, std::atanh, -1.1, 1.1);
  check("asin", portable::asin, std::asin, -1.1, 1.1);
  check("acos", portable::acos, std::acos, -1.1, 1.1);
  check("atan", portable::atan, std::atan, -10, 10);
  check("erfc", portable::erfc, std::erfc, -6, 27);
}

TEST_CASE("portable functions: two arguments in all quadrants and at special values") {
  const std::initializer_list<double> values = {-kInfinity, -1e300, -2.5, -1,    -1e-310,   -0.0, 0.0,
                                                1e-310,     1,      0.7,  1e300, kInfinity, kNaN};
  for (const double y : values) {
    for (const double x : values) {
      CAPTURE(y);
      CAPTURE(x);
      CHECK(near(portable::atan2(y, x), std::atan2(y, x), 4));
      CHECK(near(portable::hypot(y, x), std::hypot(y, x), 4));
    }
  }
}

TEST_CASE("portable functions: erfinv is the inverse of erf") {
  for (int i = -1999; i < 2000; ++i) {
    const double x = static_cast<double>(i) / 2000, y = portable::erfinv(x);
    CAPTURE(x);
    CHECK(std::fabs(std::erf(y) - x) <= 1e-15 * std::fabs(x));
  }
  for (const double tail : {1e-3, 1e-6, 1e-10, 1e-15}) {  // of 1 - x
    CAPTURE(tail);
    const double x = 1 - tail;
    CHECK(std::fabs(std::erfc(portable::erfinv(x)) - (1 - x)) <= 1e-13 * (1 - x));
  }
  CHECK(portable::erfinv(1) == kInfinity);
  CHECK(portable::erfinv(-1) == -kInfinity);
  CHECK(std::isnan(portable::erfinv(1.5)));
  CHECK(std::isnan(portable::erfinv(kNaN)));
  CHECK(std::signbit(portable::erfinv(-0.0)));
}

TEST_CASE("portable functions: logarithms of powers are whole") {
  for (int k = -1074; k < 1024; ++k) CHECK(portable::log2(std::ldexp(1, k)) == k);
  double power = 1;
  for (int k = 0; k <= 22; ++k, power *= 10) CHECK(portable::log10(power) == k);
}
