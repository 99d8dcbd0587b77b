// Elementary functions in double from additions, products, quotients and square roots alone: a few ulp at most.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "autograd/portable_math.h"

namespace onestep::portable {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 0x1.62e42fefa39efp-1, kInverseLn2 = 0x1.71547652b82fep+0;
constexpr double kPi = 0x1.921fb54442d18p+1, kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kTwoOverSqrtPi = 0x1.20dd750429b6dp+0;

/// c[0] + c[1] x + c[2] x^2 + ...
template <size_t N>
double polynomial(double x, const std::array<double, N>& c) {
  double y = c[N - 1];
  for (size_t i = N - 1; i-- > 0;) y = y * x + c[i];
  return y;
}

/// 2^n for -1022 <= n <= 1023.
double power_of_two(int64_t n) { return std::bit_cast<double>((n + 1023) << 52); }
/// x 2^n: in two steps, since 2^n may be no normal number.
double scaled(double x, int64_t n) { return x * power_of_two(n / 2) * power_of_two(n - n / 2); }

/// exp(r) - 1 for |r| <= ln(2) / 2: Taylor's series.
double expm1_near_0(double r) {
  constexpr auto terms = [] {
    std::array<double, 14> inverse{};  // 1 / 0!, 1 / 1!, ...
    inverse[0] = 1;
    for (size_t k = 1; k < inverse.size(); ++k) inverse[k] = inverse[k - 1] / static_cast<double>(k);
    std::array<double, 12> from_2{};
    for (size_t k = 0; k < from_2.size(); ++k) from_2[k] = inverse[k + 2];
    return from_2;
  }();
  return r + r * r * polynomial(r, terms);
}

/// x = n ln 2 + rest, |rest| <= ln(2) / 2, for |x| < 1500.
struct Reduced {
  int64_t n;
  double rest;
};
Reduced reduce(double x) {
  constexpr double high = 0x1.62e42feep-1, low = 0x1.a39ef35793c76p-33;  // n * high is exact
  const double n = std::floor(x * kInverseLn2 + 0.5);
  return {static_cast<int64_t>(n), (x - n * high) - n * low};
}

}  // namespace

double exp(double x) {
  if (!(std::fabs(x) < 750)) return x > 0 ? kInfinity : x < 0 ? 0 : x;
  const Reduced r = reduce(x);
  return scaled(1 + expm1_near_0(r.rest), r.n);
}

double exp2(double x) {
  if (!(std::fabs(x) < 1100)) return x > 0 ? kInfinity : x < 0 ? 0 : x;
  const double n = std::floor(x + 0.5);
  return scaled(1 + expm1_near_0((x - n) * kLn2), static_cast<int64_t>(n));
}

double expm1(double x) {
  if (!(std::fabs(x) < 750)) return x > 0 ? kInfinity : x < 0 ? -1 : x;
  if (x == 0) return x;
  const Reduced r = reduce(x);
  return r.n > 60 ? exp(x) : scaled(expm1_near_0(r.rest), r.n) + (scaled(1, r.n) - 1);
}

double log1p(double x) {
  if (x == 0 || x == kInfinity) return x;
  const double u = 1 + x;
  return u > 0 ? log(u) + (x - (u - 1)) / u : log(u);  // what the sum lost
}

double log2(double x) {
  if (!(x > 0 && x < kInfinity)) return log(x);
  const bool subnormal = x < std::numeric_limits<double>::min();
  const int64_t u = std::bit_cast<int64_t>(subnormal ? x * 0x1p54 : x) - 0x3fe6a09e667f3bcd;  // minus the bits of sqrt(1/2)
  const auto m = std::bit_cast<double>((u & 0xfffffffffffff) + 0x3fe6a09e667f3bcd);           // in [sqrt(1/2), sqrt(2))
  return static_cast<double>((u >> 52) - (subnormal ? 54 : 0)) + log(m) * kInverseLn2;
}

double log10(double x) {
  constexpr double ln10 = 0x1.26bb1bbb55516p+1;
  const double y = log(x) / ln10, whole = std::floor(y + 0.5);
  return std::fabs(y - whole) <= 0x1p-51 * std::fabs(whole) ? whole : y;  // 10^k gives k
}

double sinh(double x) {
  const double a = std::fabs(x), e = expm1(a);
  if (e < kInfinity) return std::copysign(0.5 * (e + e / (e + 1)), x);
  const double root = exp(0.5 * a);
  return std::copysign(0.5 * root * root, x);
}

double cosh(double x) {
  const double e = exp(std::fabs(x));
  if (e < kInfinity) return 0.5 * e + 0.5 / e;
  const double root = exp(0.5 * std::fabs(x));
  return 0.5 * root * root;
}

double tanh(double x) {
  const double e = expm1(-2 * std::fabs(x));
  return std::copysign(-e / (e + 2), x);
}

double asinh(double x) {
  const double a = std::fabs(x);
  const double y = a > 0x1p28 ? log(a) + kLn2 : log1p(a + a * a / (1 + std::sqrt(1 + a * a)));
  return std::copysign(y, x);
}

double acosh(double x) {
  if (!(x >= 1)) return kNaN;
  const double t = x - 1;
  return x > 0x1p28 ? log(x) + kLn2 : log1p(t + std::sqrt(t * (x + 1)));
}

double atanh(double x) {
  const double a = std::fabs(x);
  return std::copysign(0.5 * log1p(2 * a / (1 - a)), x);
}

double asin(double x) { return atan2(x, std::sqrt((1 - x) * (1 + x))); }
double acos(double x) { return atan2(std::sqrt((1 - x) * (1 + x)), x); }

double atan(double x) {
  // atan(i / 8), and what that lacks; atan(z) = atan(c) + atan((z - c) / (1 + z c))
  constexpr std::array high = {0.0,
                               0x1.fd5ba9aac2f6ep-4,
                               0x1.f5b75f92c80ddp-3,
                               0x1.6f61941e4def1p-2,
                               0x1.dac670561bb4fp-2,
                               0x1.1e00babdefeb4p-1,
                               0x1.4978fa3269ee1p-1,
                               0x1.700a7c5784634p-1,
                               0x1.921fb54442d18p-1};
  constexpr std::array low = {0.0,
                              -0x1.cd37686760c17p-59,
                              0x1.8ab6e3cf7afbdp-57,
                              -0x1.c63aae6f6e918p-56,
                              0x1.a2b7f222f65e2p-56,
                              -0x1.928df287a668fp-58,
                              0x1.2419a87f2a458p-56,
                              -0x1.8c34d25aadef6p-56,
                              0x1.1a62633145c07p-55};
  constexpr std::array series = {-1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11, 1.0 / 13, -1.0 / 15};
  if (x != x) return x;
  const double a = std::fabs(x), z = a > 1 ? 1 / a : a, near = std::floor(z * 8 + 0.5), c = near / 8;
  const double d = (z - c) / (1 + z * c), d2 = d * d;
  const auto i = static_cast<size_t>(near);
  const double y = high[i] + (d + (d * d2 * polynomial(d2, series) + low[i]));
  return std::copysign(a > 1 ? kHalfPi - (y - kHalfPiLow) : y, x);
}

double atan2(double y, double x) {
  if (x != x || y != y) return kNaN;
  if (y == 0 && !std::signbit(x)) return y;
  const double b = std::fabs(x), a = std::fabs(y);
  const double angle = a == b && a != 0 ? kHalfPi / 2 : a == 0 ? 0 : atan(a / b);  // inf / inf is NaN
  return std::copysign(std::signbit(x) ? 2 * kHalfPi - (angle - 2 * kHalfPiLow) : angle, y);
}

double hypot(double x, double y) {
  const double a = std::fabs(x), b = std::fabs(y), larger = a > b ? a : b;
  if (a == kInfinity || b == kInfinity) return kInfinity;
  if (!(larger < 0x1p500 && larger > 0x1p-400)) {
    if (larger == 0 || x != x || y != y) return a + b;
    const int64_t up = larger < 1 ? 600 : -600;
    return scaled(hypot(scaled(a, up), scaled(b, up)), -up);
  }
  return std::sqrt(a * a + b * b);
}

namespace {

/// erf(x) / x for |x| <= 1/2, of x^2: Taylor's series.
double erf_over_x(double x2) {
  constexpr auto terms = [] {
    std::array<double, 14> c{};
    double factorial = 1;
    for (size_t n = 0; n < c.size(); ++n) {
      if (n > 0) factorial *= -static_cast<double>(n);
      c[n] = kTwoOverSqrtPi / (factorial * static_cast<double>(2 * n + 1));
    }
    return c;
  }();
  return polynomial(x2, terms);
}

/// exp(-a^2), with the digits of a^2 that do not fit a double.
double gauss(double a) {
  const double square = a * a;
  return exp(-square) * (1 - std::fma(a, a, -square));
}

/// exp(a^2) erfc(a) (1 + 2 a) for a >= 1/2 as a polynomial in (a - 3.75) / (a + 3.75) (Shepherd and Laframboise 1981), expanded
/// anew in Chebyshev polynomials.
double erfc_factor(double a) {
  constexpr std::array c = {0x1.3ccda0b5d5dc3p+0,  -0x1.1f367683f89bdp-3,  0x1.d5f29481561bcp-9,   0x1.510169d097b90p-4,
                            -0x1.bda9309a22ad9p-4, 0x1.7a14188a6f444p-4,   -0x1.e0d0fa6edd0a0p-5,  0x1.d0b0038886432p-6,
                            -0x1.3f603c151c34dp-7, 0x1.cc3a081a3362ap-10,  0x1.33fb13c51e344p-12,  -0x1.303f1a123d82ep-12,
                            0x1.b145090f26ba6p-15, 0x1.776df8aeb0c26p-16,  -0x1.7ffdea410e194p-17, -0x1.01555e866d7d5p-20,
                            0x1.d4de6f58aecbfp-20, -0x1.4a80d4aea85c1p-24, -0x1.09904af72fc79p-22, 0x1.4342aedefdf0ap-25,
                            0x1.ce8ff588ad079p-26, -0x1.0e4617f590a70p-27};
  return polynomial((a - 3.75) / (a + 3.75), c);
}

}  // namespace

double erfc(double x) {
  const double a = std::fabs(x);
  if (a < 0.5) return 1 - x * erf_over_x(x * x);
  const double tail = a < 28 ? gauss(a) * erfc_factor(a) / (1 + 2 * a) : a >= 28 ? 0 : x;
  return x < 0 ? 2 - tail : tail;
}

double erfinv(double x) {
  const double a = std::fabs(x), rest = 1 - a;
  if (!(rest > 0)) return rest == 0 ? std::copysign(kInfinity, x) : kNaN;
  // To seven digits by Giles 2010 (Approximating the erfinv function), to three in the far tail, where erfc(y) is about
  // exp(-y^2) / (y sqrt(pi)); then Halley's method.
  constexpr std::array near = {1.50140941,      0.246640727,    -0.00417768164, -0.00125372503, 0.000218580870,
                               -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
  constexpr std::array far = {2.83297682,     1.00167406,    0.00943887047,  -0.00762246130, 0.00573950773,
                              -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257};
  const double w = -log(rest * (1 + a));
  double y = w < 5    ? a * polynomial(w - 2.5, near)
             : w < 16 ? a * polynomial(std::sqrt(w) - 3, far)
                      : std::sqrt(-log(rest) - 0.5 * log(-kPi * log(rest)));
  for (int step = 0; step < (w < 16 ? 1 : 2); ++step) {
    const double error = y < 0.5 ? y * erf_over_x(y * y) - a : rest - erfc(y);
    const double newton = error / (kTwoOverSqrtPi * gauss(y));
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

}  // namespace onestep::portable
