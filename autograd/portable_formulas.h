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
inline constexpr double kTwoOverSqrtPi = 0x1.20dd750429b6dp+0, kRootHalf = 0x1.6a09e667f3bcdp-1;

/// c[0] + c[1] x + c[2] x^2 + ...
template <size_t N>
ONESTEP_FORMULA double polynomial(double x, const std::array<double, N>& c) {
  double y = c[N - 1];
#pragma GCC unroll 32
  for (size_t i = N - 1; i > 0; --i) y = y * x + c[i - 1];
  return y;
}

/// The same as c[0] + x (even + x odd), with every step rounded once: half the instructions and a quarter of the time until the
/// result is there, but slow where the CPU has no such instruction.
template <size_t N>
ONESTEP_FORMULA double fused_polynomial(double x, const std::array<double, N>& c) {
  const double x2 = x * x;
  double y = c[N - 1], other = c[N - 2];
#pragma GCC unroll 32
  for (size_t i = N - 2; i > 1; --i) {
    const double next = std::fma(y, x2, c[i - 1]);
    y = other;
    other = next;
  }
  return std::fma(std::fma(y, x, other), x, c[0]);
}

/// A sum of 1.5 * 2^52 and a small whole number has that number in its lowest bits.
inline constexpr double kWhole = 0x1.8p52;
ONESTEP_FORMULA uint64_t bits_of_whole(double n) { return std::bit_cast<uint64_t>(n + kWhole); }
ONESTEP_FORMULA double whole_of_bits(uint64_t n) { return std::bit_cast<double>(n + std::bit_cast<uint64_t>(kWhole)) - kWhole; }

/// x 2^n for a whole n, |n| <= 2044, rounded once: in two steps, since 2^n may be no normal number.
ONESTEP_FORMULA double scaled(double x, double n) {
  const uint64_t exponents = std::bit_cast<uint64_t>(n + (kWhole + 2046)), half = exponents >> 1;
  return x * std::bit_cast<double>(half << 52) * std::bit_cast<double>((exponents - half) << 52);
}

/// exp(r) - 1 for |r| <= ln(2) / 2, to 2^-61 of r.
ONESTEP_FORMULA double expm1_near_0(double r) {
  constexpr std::array c = {0.5,
                            0x1.5555555555559p-3,
                            0x1.555555555555ap-5,
                            0x1.111111110f699p-7,
                            0x1.6c16c16c1443dp-10,
                            0x1.a01a01afeef69p-13,
                            0x1.a01a01b0bd57ep-16,
                            0x1.71ddf83851603p-19,
                            0x1.27e4c5931e1bep-22,
                            0x1.af5ef2c373d6ep-26,
                            0x1.1f9578e6cd12fp-29};
  return std::fma(r * r, fused_polynomial(r, c), r);
}

/// x between -limit and limit; NaN stays NaN.
ONESTEP_FORMULA double limited(double x, double limit) { return std::fabs(x) > limit ? std::copysign(limit, x) : x; }

/// x = n ln 2 + rest with n whole, |rest| <= ln(2) / 2, for |x| < 1500.
struct Reduced {
  double n, rest;
};
ONESTEP_FORMULA Reduced reduce(double x) {
  const double n = std::fma(x, kInverseLn2, kWhole) - kWhole;
  return {n, std::fma(-n, kLn2Low, std::fma(-n, kLn2, x))};  // the inner one is exact
}

ONESTEP_FORMULA double exp(double x) {
  const Reduced r = reduce(limited(x, 746));  // beyond it is 0 or infinite
  return scaled(1 + expm1_near_0(r.rest), r.n);
}

ONESTEP_FORMULA double exp2(double x) {
  const double near = limited(x, 1076), n = (near + kWhole) - kWhole;
  return scaled(1 + expm1_near_0((near - n) * kLn2), n);
}

/// expm1 for x that is not too near to the smallest number.
ONESTEP_FORMULA double moderate_expm1(double x) {
  const Reduced r = reduce(limited(x, 710));
  const double half = scaled(0.5, r.n);
  return 2 * std::fma(half, expm1_near_0(r.rest), half - 0.5);
}
ONESTEP_FORMULA double expm1(double x) {
  const double y = moderate_expm1(x);
  return std::fabs(x) < 0x1p-54 ? x : y;
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

/// log((1 + s) / (1 - s)) / s - 2 for |s| <= 1/3, of s^2.
ONESTEP_FORMULA double atanh_rest(double s2) {
  constexpr std::array c = {0x1.5555555555535p-1, 0x1.99999999a085bp-2, 0x1.249249208491ep-2, 0x1.c71c742001a4fp-3,
                            0x1.745cb38a877ecp-3, 0x1.3b1de49a54a29p-3, 0x1.106754b9f3f92p-3, 0x1.efdec7b9a44c2p-4,
                            0x1.55969c20c88a7p-4, 0x1.5c8fc4cbfbbcdp-3};
  return s2 * fused_polynomial(s2, c);
}

/// log(x) to an ulp, with half the work: of 1 + f = m it is f - f^2 / 2 and a rest (fdlibm's way).
ONESTEP_FORMULA double quick_log(double x) {
  const Binary b = binary(x);
  const double f = b.m - 1, s = f / (2 + f), half = 0.5 * f * f;
  const double rest = std::fma(s, half + atanh_rest(s * s), b.exponent * kLn2Low) - half;
  return log_or(x, std::fma(b.exponent, kLn2, f + rest));
}

/// log(1 + exp(x)): with e = exp(-|x|) it is max(x, 0) + log(1 + e), (1 + s) / (1 - s) = 1 + e.
ONESTEP_FORMULA double softplus(double x) {
  const double e = exp(-std::fabs(x)), s = e / (2 + e), y = std::fma(s, atanh_rest(s * s), 2 * s);
  return (x > 0 ? x : 0) + (e < 0x1p-54 ? e : y);
}

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
  const double e = moderate_expm1(-2 * std::fabs(x)), sum = e + 2, y = -e / sum, lost = e - (sum - 2);
  return std::copysign(std::fma(-y, lost, y), x);  // lost / sum would be exact
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

/// Up to here sin, cos and tan have all their digits.
inline constexpr double kTrigLimit = 0x1p30;
/// sin(x - n pi) with n whole and x - n pi between about -pi/2 and pi/2, for |n| <= 2^29.
ONESTEP_FORMULA double sin_minus(double x, double n, double signs) {
  constexpr double low = 0x1.1a62633145c07p-53, lowest = -0x1.f1976b7ed8fbcp-109;
  constexpr std::array c = {-0x1.5555555555555p-3,  0x1.11111111110c1p-7,  -0x1.a01a01a0148b4p-13, 0x1.71de3a528783cp-19,
                            -0x1.ae6454cb3296ep-26, 0x1.6123cb1e49d9ep-33, -0x1.ae431a6a1dd22p-41, 0x1.882942ed6044fp-49};
  const double exact = std::fma(-n, kPi, x), less = n * low, r = exact - less, r2 = r * r;
  const double of_less = exact - r, lost = (exact - (r + of_less)) - (less - of_less);  // exactly what r lacks
  const double rest = lost - std::fma(n, lowest, std::fma(n, low, -less)), slope = std::fma(-0.5, r2, 1);
  const double y = r + std::fma(r * r2, fused_polynomial(r2, c), rest * slope);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(y) ^ bits_of_whole(signs) << 63);
}
ONESTEP_FORMULA double sin(double x) {
  const double n = std::fma(x, 1 / kPi, kWhole) - kWhole;
  return x == 0 ? x : sin_minus(x, n, n);
}
ONESTEP_FORMULA double cos(double x) {  // sin(x + pi/2)
  const double n = (std::fma(x, 1 / kPi, 0.5) + kWhole) - kWhole;
  return sin_minus(x, n - 0.5, n);
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

/// erf(x) / x for |x| <= 1, of x^2.
ONESTEP_FORMULA double erf_over_x(double x2) {
  constexpr std::array c = {0x1.20dd750429b6dp+0,  -0x1.812746b0379c2p-2,  0x1.ce2f21a041018p-4,  -0x1.b82ce312062bcp-6,
                            0x1.565bccfa9a825p-8,  -0x1.c02db072f3fe0p-11, 0x1.f9a2bf73f0c68p-14, -0x1.f4ca94990cb86p-17,
                            0x1.b9827b1885f9bp-20, -0x1.5c16e30fb0d45p-23, 0x1.d784936618cc2p-27, -0x1.acdff90b8ebd8p-31};
  return fused_polynomial(x2, c);
}

/// From 1 on 1 - exp(p(|x|)): erfc is small there, so an error of p counts little.
ONESTEP_FORMULA double erf(double x) {
  constexpr std::array c = {-0x1.138b102249ed2p-21, -0x1.20dd1e301eccap+0,  -0x1.45f635a75a41ep-1,  -0x1.a4ab280111b5bp-4,
                            0x1.37199ed34fcc4p-6,   0x1.b19ff22bd9728p-12,  -0x1.f70a4a785f233p-10, 0x1.954c2753216aep-11,
                            -0x1.1e6030e85f724p-13, -0x1.478d131b4db49p-16, 0x1.7a0b2143342a4p-16,  -0x1.1fdbdb5161885p-17,
                            0x1.1bd8930d24f14p-19,  -0x1.8cd2292a558f9p-22, 0x1.8a90ef8fb7a7ep-25,  -0x1.0b524ce282cebp-28,
                            0x1.bc47e782b8582p-33,  -0x1.565a61adfa6f9p-38};
  const double a = std::fabs(x), near_0 = x * erf_over_x(x * x), far = 1 - exp(fused_polynomial(a > 6 ? 6 : a, c));
  return a < 1 ? near_0 : std::copysign(far, x);
}

/// exp(-a^2), with the digits of a^2 that do not fit a double.
ONESTEP_FORMULA double gauss(double a) {
  const double square = a * a, y = exp(-square);
  return std::fma(-y, std::fma(a, a, -square), y);
}

/// exp(a^2) erfc(a) for a >= 1/2: times a + 3.75 a polynomial in (a - 3.75) / (a + 3.75) (after Shepherd and Laframboise 1981).
ONESTEP_FORMULA double erfcx_from_half(double a) {
  constexpr std::array c = {0x1.178842825349cp+0,  -0x1.eae02d0a14568p-1,  0x1.78fecb4e81b2dp-1,   -0x1.f63dd811963fap-2,
                            0x1.1dc271189d16ap-2,  -0x1.0e3ea224b0dcfp-3,  0x1.92618b79c3f60p-5,   -0x1.9ac695748c8a4p-7,
                            0x1.029005a4e4c3ap-10, 0x1.a0b76228528a4p-11,  -0x1.6d9504b0d6544p-12, 0x1.636d6a7b03dcbp-17,
                            0x1.3a50c6b31235bp-15, -0x1.2a9798011feb4p-17, -0x1.b8b4fb5df19c9p-19, 0x1.b95426d350febp-20,
                            0x1.22d17c7fce83bp-22, -0x1.08e4fe81da1eap-22, -0x1.47fbc17ccab64p-26, 0x1.c5916add15ccdp-26};
  const double inverse = 1 / (a + 3.75);
  return fused_polynomial((a - 3.75) * inverse, c) * inverse;
}

ONESTEP_FORMULA double erfc(double x) {
  const double a = std::fabs(x), near_0 = 1 - x * erf_over_x(x * x);
  const double far = gauss(a) * erfcx_from_half(a), tail = a < 28 ? far : a >= 28 ? 0 : x;
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
