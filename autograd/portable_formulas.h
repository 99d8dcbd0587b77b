#pragma once
// The functions of portable_math.h as formulas that end up where they are called: without branches, calls or conversions to
// integers, so that the compiler makes vector instructions of a loop over them (vector_loop.h). Special cases are choices
// between values that are both computed.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#define ONESTEP_FORMULA [[gnu::always_inline]] inline

// clang-tidy 14 takes a choice of infinity for a narrowing one.
// NOLINTBEGIN(bugprone-narrowing-conversions)
namespace onestep::portable::formulas {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56, kInverseLn2 = 0x1.71547652b82fep+0;
inline constexpr double kPi = 0x1.921fb54442d18p+1, kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
inline constexpr double kTwoOverSqrtPi = 0x1.20dd750429b6dp+0;

/// c[0] + c[1] x + c[2] x^2 + ...
template <size_t N>
ONESTEP_FORMULA double polynomial(double x, const std::array<double, N>& c) {
  double y = c[N - 1];
#pragma GCC unroll 32
  for (size_t i = N - 1; i > 0; --i) y = y * x + c[i - 1];
  return y;
}

/// A sum of 1.5 * 2^52 and a small whole number has that number in its lowest bits.
inline constexpr double kWhole = 0x1.8p52;
ONESTEP_FORMULA uint64_t bits_of_whole(double n) { return std::bit_cast<uint64_t>(n + kWhole); }
ONESTEP_FORMULA double whole_of_bits(uint64_t n) { return std::bit_cast<double>(n + std::bit_cast<uint64_t>(kWhole)) - kWhole; }

/// 2^n for a whole n, -1022 <= n <= 1023.
ONESTEP_FORMULA double power_of_two(double n) { return std::bit_cast<double>((bits_of_whole(n) + 1023) << 52); }
/// x 2^n: in two steps, since 2^n may be no normal number.
ONESTEP_FORMULA double scaled(double x, double n) {
  const double half = std::trunc(0.5 * n);
  return x * power_of_two(half) * power_of_two(n - half);
}

/// exp(r) - 1 for |r| <= ln(2) / 2: Taylor's series.
ONESTEP_FORMULA double expm1_near_0(double r) {
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

/// x = n ln 2 + rest with n whole, |rest| <= ln(2) / 2, for |x| < 1500.
struct Reduced {
  double n, rest;
};
ONESTEP_FORMULA Reduced reduce(double x) {
  constexpr double high = 0x1.62e42feep-1, low = 0x1.a39ef35793c76p-33;  // n * high is exact
  const double n = std::floor(x * kInverseLn2 + 0.5);
  return {n, (x - n * high) - n * low};
}
/// x, or 0 where |x| is not below `limit`: what is beyond is not computed.
ONESTEP_FORMULA double within(double x, double limit) { return std::fabs(x) < limit ? x : 0; }
/// From where on exp(x) is infinite or 0.
inline constexpr double kExpLimit = 750;
/// `y` for |x| < limit, else the limits of a function that goes from `low` to infinity.
ONESTEP_FORMULA double beyond(double x, double limit, double y, double low) {
  const double end = x > 0 ? kInfinity : x < 0 ? low : x;
  return std::fabs(x) < limit ? y : end;
}

ONESTEP_FORMULA double exp(double x) {
  constexpr double limit = kExpLimit;
  const Reduced r = reduce(within(x, limit));
  return beyond(x, limit, scaled(1 + expm1_near_0(r.rest), r.n), 0);
}

ONESTEP_FORMULA double exp2(double x) {
  constexpr double limit = 1100;
  const double near = within(x, limit), n = std::floor(near + 0.5);
  return beyond(x, limit, scaled(1 + expm1_near_0((near - n) * kLn2), n), 0);
}

ONESTEP_FORMULA double expm1(double x) {
  constexpr double limit = kExpLimit;
  const Reduced r = reduce(within(x, limit));
  const double e = expm1_near_0(r.rest), large = scaled(1 + e, r.n);
  const double y = scaled(e, r.n) + (scaled(1, r.n) - 1);
  return x == 0 ? x : beyond(x, limit, r.n > 60 ? large : y, -1);
}

/// The bits of sqrt(1/2).
inline constexpr uint64_t kRootBits = 0x3fe6a09e667f3bcd;
/// x = 2^exponent m with m in [sqrt(1/2), sqrt(2)), for x > 0 and finite.
struct Binary {
  double exponent, m;
};
ONESTEP_FORMULA Binary binary(double x) {
  const bool subnormal = x < std::numeric_limits<double>::min();
  const double normal = subnormal ? x * 0x1p54 : x;
  const uint64_t u = std::bit_cast<uint64_t>(normal) - kRootBits + (uint64_t{1024} << 52);
  return {whole_of_bits(u >> 52) - (subnormal ? 1024.0 + 54.0 : 1024.0),
          std::bit_cast<double>((u & 0xfffffffffffff) + kRootBits)};
}

/// log(2^exponent m): with (1 + s) / (1 - s) = m it is exponent ln 2 + 2 atanh(s), s a sum of two numbers, |s| < 0.172.
ONESTEP_FORMULA double log(const Binary& x) {
  const double sum = x.m + 1, s = (x.m - 1) / sum, s2 = s * s;
  double series = 0;  // 2/3 s^2 + 2/5 s^4 + ...: at most a hundredth of the sum, so its rounding counts little
#pragma GCC unroll 16
  for (int k = 21; k >= 3; k -= 2) series = (series + 2.0 / k) * s2;
  const double one = sum - x.m, sum_low = (x.m - (sum - one)) + (1 - one);
  const double s_low = (std::fma(-s, sum, x.m - 1) - s * sum_low) / sum;
  const double whole = x.exponent * kLn2, whole_low = std::fma(x.exponent, kLn2, -whole);
  const double high = whole + 2 * s, part = high - whole, low = (whole - (high - part)) + (2 * s - part);
  return high + (low + (whole_low + x.exponent * kLn2Low + (2 * s_low + s * series)));
}
/// `y` for 0 < x < infinity, else the logarithm there.
ONESTEP_FORMULA double log_or(double x, double y) {
  const double special = x == 0 ? -kInfinity : x > 0 ? x : kNaN;
  return x > 0 && x < kInfinity ? y : special;
}

ONESTEP_FORMULA double log(double x) { return log_or(x, log(binary(x))); }

/// log(1 + t), or log(x) + ln 2 where `large`, with one logarithm.
ONESTEP_FORMULA double log1p_or_log(double t, bool large, double x) {
  const double u = 1 + t, y = log(large ? x : u), lost = (t - (u - 1)) / (u == 0 ? 1 : u);  // by the sum
  return large ? y + kLn2 : t == 0 || t == kInfinity ? t : y + lost;
}
ONESTEP_FORMULA double log1p(double x) { return log1p_or_log(x, false, x); }

/// log(1 + exp(x))
ONESTEP_FORMULA double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-std::fabs(x))); }

ONESTEP_FORMULA double log2(double x) {
  const Binary b = binary(x);
  return log_or(x, b.exponent + log(Binary{0, b.m}) * kInverseLn2);
}

ONESTEP_FORMULA double log10(double x) {
  constexpr double ln10 = 0x1.26bb1bbb55516p+1;
  const double y = log(x) / ln10, whole = std::floor(y + 0.5);
  return std::fabs(y - whole) <= 0x1p-51 * std::fabs(whole) ? whole : y;  // 10^k gives k
}

ONESTEP_FORMULA double sinh(double x) {
  const double a = std::fabs(x), e = expm1(a), y = 0.5 * (e + e / (e + 1));
  const double root = exp(0.5 * a);
  return std::copysign(e < kInfinity ? y : 0.5 * root * root, x);
}

ONESTEP_FORMULA double cosh(double x) {
  const double e = exp(std::fabs(x)), y = 0.5 * e + 0.5 / e;
  const double root = exp(0.5 * std::fabs(x));
  return e < kInfinity ? y : 0.5 * root * root;
}

ONESTEP_FORMULA double tanh(double x) {
  const double e = expm1(-2 * std::fabs(x));
  return std::copysign(-e / (e + 2), x);
}

/// x - t for t = tanh(x): below 1, where the two are nearly equal, x^3 times a polynomial of x^2.
ONESTEP_FORMULA double tanhshrink(double x, double t) {
  constexpr std::array c = {0x1.5555555555555p-2,  -0x1.11111111110b9p-3,  0x1.ba1ba1ba1453ep-5,  -0x1.664f4880d2a47p-6,
                            0x1.226e3519865dfp-7,  -0x1.d6d3c538d0bbep-9,  0x1.7da2bdc3daa27p-10, -0x1.3551ae34bdfffp-11,
                            0x1.f5211730ee038p-13, -0x1.94981e5bdbe6fp-14, 0x1.42090e21d3d28p-15, -0x1.ea19b73b128d8p-17,
                            0x1.4eb911dcd9788p-18, -0x1.7238a0a7e22b6p-20, 0x1.1ab979c0ab58cp-22, -0x1.b028f6cb72ebfp-26};
  const double x2 = x * x;
  return std::fabs(x) < 1 ? x * x2 * polynomial(x2, c) + 0.0 : x - t;  // 0 for -0
}

ONESTEP_FORMULA double asinh(double x) {
  const double a = std::fabs(x);
  return std::copysign(log1p_or_log(a + a * a / (1 + std::sqrt(1 + a * a)), a > 0x1p28, a), x);
}

ONESTEP_FORMULA double acosh(double x) {
  const double t = x - 1, y = log1p_or_log(t + std::sqrt(t * (x + 1)), x > 0x1p28, x);
  return x >= 1 ? y : kNaN;
}

ONESTEP_FORMULA double atanh(double x) {
  const double a = std::fabs(x);
  return std::copysign(0.5 * log1p(2 * a / (1 - a)), x);
}

// atan(i / 8), and what that lacks; the rest of 16 places is for NaN.
inline constexpr std::array<double, 16> kAtan = {0.0,
                                                 0x1.fd5ba9aac2f6ep-4,
                                                 0x1.f5b75f92c80ddp-3,
                                                 0x1.6f61941e4def1p-2,
                                                 0x1.dac670561bb4fp-2,
                                                 0x1.1e00babdefeb4p-1,
                                                 0x1.4978fa3269ee1p-1,
                                                 0x1.700a7c5784634p-1,
                                                 0x1.921fb54442d18p-1};
inline constexpr std::array<double, 16> kAtanLow = {0.0,
                                                    -0x1.cd37686760c17p-59,
                                                    0x1.8ab6e3cf7afbdp-57,
                                                    -0x1.c63aae6f6e918p-56,
                                                    0x1.a2b7f222f65e2p-56,
                                                    -0x1.928df287a668fp-58,
                                                    0x1.2419a87f2a458p-56,
                                                    -0x1.8c34d25aadef6p-56,
                                                    0x1.1a62633145c07p-55};

/// atan(z) = atan(c) + atan((z - c) / (1 + z c)) with c the multiple of 1/8 next to z.
ONESTEP_FORMULA double atan(double x) {
  constexpr auto series = [] {
    std::array<double, 7> c{};  // -1/3, 1/5, -1/7, ...
    for (size_t k = 0; k < c.size(); ++k) c[k] = (k % 2 == 0 ? -1.0 : 1.0) / static_cast<double>(2 * k + 3);
    return c;
  }();
  const double a = std::fabs(x), inverse = 1 / a, z = a > 1 ? inverse : a, near = std::floor(z * 8 + 0.5), c = near / 8;
  const double d = (z - c) / (1 + z * c), d2 = d * d;
  const uint64_t i = bits_of_whole(near) & 15;
  const double y = kAtan[i] + (d + (d * d2 * polynomial(d2, series) + kAtanLow[i]));
  return std::copysign(a > 1 ? kHalfPi - (y - kHalfPiLow) : y, x);
}

ONESTEP_FORMULA bool has_sign(double x) { return std::bit_cast<int64_t>(x) < 0; }

ONESTEP_FORMULA double atan2(double y, double x) {
  const double b = std::fabs(x), a = std::fabs(y), quotient = atan(a / b);  // inf / inf is NaN
  const double angle = a == b && a != 0 ? kHalfPi / 2 : a == 0 ? 0 : quotient;
  const double z = std::copysign(has_sign(x) ? 2 * kHalfPi - (angle - 2 * kHalfPiLow) : angle, y);
  return x != x || y != y ? kNaN : y == 0 && !has_sign(x) ? y : z;
}

ONESTEP_FORMULA double asin(double x) { return atan2(x, std::sqrt((1 - x) * (1 + x))); }
ONESTEP_FORMULA double acos(double x) { return atan2(std::sqrt((1 - x) * (1 + x)), x); }

ONESTEP_FORMULA double hypot(double x, double y) {
  const double a = std::fabs(x), b = std::fabs(y), larger = a > b ? a : b;
  const bool tiny = larger<0x1p-400, huge = larger> 0x1p500;  // whose squares are no normal numbers
  const double up = tiny ? 0x1p600 : huge ? 0x1p-600 : 1, down = tiny ? 0x1p-600 : huge ? 0x1p600 : 1;
  const double u = a * up, v = b * up, root = std::sqrt(u * u + v * v) * down;
  return a == kInfinity || b == kInfinity ? kInfinity : root;
}

/// erf(x) / x for |x| <= 1/2, of x^2: Taylor's series.
ONESTEP_FORMULA double erf_over_x(double x2) {
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
ONESTEP_FORMULA double gauss(double a) {
  const double square = a * a;
  return exp(-square) * (1 - std::fma(a, a, -square));
}

/// exp(a^2) erfc(a) (1 + 2 a) for a >= 1/2 as a polynomial in (a - 3.75) / (a + 3.75) (Shepherd and Laframboise 1981), expanded
/// again in Chebyshev polynomials.
ONESTEP_FORMULA double erfc_factor(double a) {
  constexpr std::array c = {0x1.3ccda0b5d5dc3p+0,  -0x1.1f367683f89bdp-3,  0x1.d5f29481561bcp-9,   0x1.510169d097b90p-4,
                            -0x1.bda9309a22ad9p-4, 0x1.7a14188a6f444p-4,   -0x1.e0d0fa6edd0a0p-5,  0x1.d0b0038886432p-6,
                            -0x1.3f603c151c34dp-7, 0x1.cc3a081a3362ap-10,  0x1.33fb13c51e344p-12,  -0x1.303f1a123d82ep-12,
                            0x1.b145090f26ba6p-15, 0x1.776df8aeb0c26p-16,  -0x1.7ffdea410e194p-17, -0x1.01555e866d7d5p-20,
                            0x1.d4de6f58aecbfp-20, -0x1.4a80d4aea85c1p-24, -0x1.09904af72fc79p-22, 0x1.4342aedefdf0ap-25,
                            0x1.ce8ff588ad079p-26, -0x1.0e4617f590a70p-27};
  return polynomial((a - 3.75) / (a + 3.75), c);
}

ONESTEP_FORMULA double erfc(double x) {
  const double a = std::fabs(x), near_0 = 1 - x * erf_over_x(x * x);
  const double far = gauss(a) * erfc_factor(a) / (1 + 2 * a), tail = a < 28 ? far : a >= 28 ? 0 : x;
  return a < 0.5 ? near_0 : x < 0 ? 2 - tail : tail;
}

/// erfinv of 0 <= a <= 1, given the same to a few digits: one step of Halley's method.
ONESTEP_FORMULA double improved_erfinv(double a, double y) {
  const double near_0 = y * erf_over_x(y * y) - a, far = (1 - a) - erfc(y), error = y < 0.5 ? near_0 : far;
  const double newton = error / (kTwoOverSqrtPi * gauss(y));
  return y - newton / (1 + y * newton);
}

ONESTEP_FORMULA double erfinv(double x) {
  const double a = std::fabs(x), rest = 1 - a;
  // To seven digits by Giles 2010 (Approximating the erfinv function), to three in the far tail, where erfc(y) is about
  // exp(-y^2) / (y sqrt(pi)).
  constexpr std::array near = {1.50140941,      0.246640727,    -0.00417768164, -0.00125372503, 0.000218580870,
                               -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
  constexpr std::array far = {2.83297682,     1.00167406,    0.00943887047,  -0.00762246130, 0.00573950773,
                              -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257};
  const double w = -log(rest * (1 + a)), near_0 = a * polynomial(w - 2.5, near);
  const double tail_0 = a * polynomial(std::sqrt(w) - 3, far), giles = w < 5 ? near_0 : tail_0;
  const double log_rest = log(rest), tail = std::sqrt(-log_rest - 0.5 * log(-kPi * log_rest));
  const double y = w < 16 ? improved_erfinv(a, giles) : improved_erfinv(a, improved_erfinv(a, tail));
  return rest > 0 ? std::copysign(y, x) : rest == 0 ? std::copysign(kInfinity, x) : kNaN;
}

}  // namespace onestep::portable::formulas
// NOLINTEND(bugprone-narrowing-conversions)
