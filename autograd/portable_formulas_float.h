#pragma once
// The formulas of portable_formulas.h for float in float arithmetic, twice as many to a register: errors of about one unit in
// the last place (vectorized_test.cpp has the bounds). What would be lost to rounding is carried along by fused multiply-adds.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "autograd/portable_formulas.h"

// NOLINTBEGIN(bugprone-narrowing-conversions)
namespace onestep::portable::formulas {

inline constexpr float kInfinity32 = std::numeric_limits<float>::infinity(), kNaN32 = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kLn2High32 = 0x1.62e430p-1f, kLn2Low32 = -0x1.05c610p-29f;
inline constexpr float kHalfPi32 = 0x1.921fb6p+0f, kHalfPiLow32 = -0x1.777a5cp-25f;

/// a b + c, rounded once.
ONESTEP_FORMULA float fused(float a, float b, float c) { return std::fma(a, b, c); }

/// c[0] + c[1] x + c[2] x^2 + ...
template <size_t N>
ONESTEP_FORMULA float polynomial(float x, const std::array<float, N>& c) {
  float y = c[N - 1];
#pragma GCC unroll 32
  for (size_t i = N - 1; i > 0; --i) y = fused(y, x, c[i - 1]);
  return y;
}

/// A sum of 1.5 * 2^23 and a small whole number has that number in its lowest bits.
inline constexpr float kWhole32 = 0x1.8p23f;
ONESTEP_FORMULA float nearest_whole(float x) { return (x + kWhole32) - kWhole32; }
/// 2^n for a whole n, -126 <= n <= 127.
ONESTEP_FORMULA float power_of_two(float n) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(n + kWhole32) + 127) << 23);
}
/// x 2^n, rounded once, for |n| <= 250: in two steps, since 2^n may be no normal number.
ONESTEP_FORMULA float scaled(float x, float n) {
  const float half = nearest_whole(0.5f * n);
  return x * power_of_two(half) * power_of_two(n - half);
}

/// x between -limit and limit; NaN stays NaN.
ONESTEP_FORMULA float clamped(float x, float limit) {
  const float most = limit < x ? limit : x;
  return -limit > most ? -limit : most;
}

/// (exp(r) - 1 - r) for |r| <= ln(2) / 2: Taylor's series.
ONESTEP_FORMULA float exp_rest(float r) {
  return r * r * polynomial(r, std::array{0.5f, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040});
}

/// x = n ln 2 + rest with n whole, |rest| <= ln(2) / 2.
struct Reduced32 {
  float n, rest;
};
ONESTEP_FORMULA Reduced32 reduce(float x) {
  const float n = nearest_whole(x * 0x1.715476p+0f);
  return {n, fused(-n, kLn2Low32, fused(-n, kLn2High32, x))};
}
/// 2^n e^rest
ONESTEP_FORMULA float exp_of(float n, float rest) { return scaled(1 + (rest + exp_rest(rest)), n); }
/// From where on exp(x) is infinite or 0, as its formula is.
inline constexpr float kExpLimit32 = 110;

ONESTEP_FORMULA float exp(float x) {
  const Reduced32 r = reduce(clamped(x, kExpLimit32));
  return exp_of(r.n, r.rest);
}

ONESTEP_FORMULA float exp2(float x) {
  constexpr std::array c = {1.0f,           0x1.62e430p-1f,  0x1.ebfbe0p-3f, 0x1.c6aed0p-5f,
                            0x1.3b29aap-7f, 0x1.5f4774p-10f, 0x1.448fc6p-13f};
  const float near = clamped(x, 160), n = nearest_whole(near);
  return scaled(polynomial(near - n, c), n);
}

/// 2^n (1 + r + rest) - 1: 2^n r + (2^n - 1) is computed with what its rounding loses.
ONESTEP_FORMULA float expm1(float x) {
  const Reduced32 r = reduce(clamped(x, kExpLimit32));
  const float rest = exp_rest(r.rest), two_n = scaled(1, r.n < 30 ? r.n : 30), less = two_n - 1, part = two_n * r.rest;
  const float sum = less + part, low = r.n == 0 ? 0 : part - (sum - less);  // |less| >= |part|
  const float y = r.n < 30 ? sum + (low + two_n * rest) : scaled(1 + (r.rest + rest), r.n);
  return x == 0 ? x : y;
}

/// x = 2^exponent (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for x > 0 and finite.
struct Binary32 {
  float exponent, f;
};
ONESTEP_FORMULA Binary32 binary_of_normal(float x) {
  constexpr uint32_t root = 0x3f3504f3;  // the bits of sqrt(1/2)
  const uint32_t u = std::bit_cast<uint32_t>(x) - root + (uint32_t{128} << 23);
  const auto exponent = static_cast<float>(static_cast<int32_t>(u >> 23));
  return {exponent - 128, std::bit_cast<float>((u & 0x7fffff) + root) - 1};
}
ONESTEP_FORMULA Binary32 binary(float x) {
  const bool subnormal = x < std::numeric_limits<float>::min();
  const Binary32 y = binary_of_normal(subnormal ? x * 0x1p24f : x);
  return {subnormal ? y.exponent - 24 : y.exponent, y.f};
}

/// log(1 + f) - f
ONESTEP_FORMULA float log_rest(float f) {
  constexpr std::array c = {0x1.555546p-2f,  -0x1.ffffeep-3f, 0x1.99a4dap-3f,  -0x1.5562b6p-3f, 0x1.2339e2p-3f,
                            -0x1.fb4fb8p-4f, 0x1.e5fe90p-4f,  -0x1.e28a98p-4f, 0x1.1b7e50p-4f};
  const float f2 = f * f;
  return fused(f2 * f, polynomial(f, c), -0.5f * f2);
}

/// exponent ln 2 + log(1 + f)
ONESTEP_FORMULA float log(const Binary32& x) {
  constexpr float ln2 = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;  // the first of 15 bits
  const float whole = x.exponent * ln2, sum = whole + x.f;
  return sum + ((x.f - (sum - whole)) + fused(x.exponent, ln2_low, log_rest(x.f)));
}
ONESTEP_FORMULA float log_or(float x, float y) {
  const float special = x == 0 ? -kInfinity32 : x > 0 ? x : kNaN32;
  return x > 0 && x < kInfinity32 ? y : special;
}

ONESTEP_FORMULA float log(float x) { return log_or(x, log(binary(x))); }

/// log(1 + t), or log(x) + ln 2 where `large`, with one logarithm.
ONESTEP_FORMULA float log1p_or_log(float t, bool large, float x) {
  const float u = 1 + t, lost = large ? 0 : t - (u - 1);
  Binary32 b = binary_of_normal(large ? x : u);
  b.f = fused(lost, power_of_two(b.exponent < 100 ? -b.exponent : 0), b.f);
  b.exponent = large ? b.exponent + 1 : b.exponent;
  const float argument = large ? x : t, special = argument == -1 ? -kInfinity32 : argument < kInfinity32 ? kNaN32 : argument;
  return argument == 0 ? argument : argument > -1 && argument < kInfinity32 ? log(b) : special;
}
ONESTEP_FORMULA float log1p(float x) { return log1p_or_log(x, false, x); }

/// log(1 + exp(x))
ONESTEP_FORMULA float softplus(float x) {
  const float t = exp(-std::fabs(x)), u = 1 + t, lost = t - (u - 1);  // 1 + t is at most 2
  const bool large = u > 0x1.6a09e6p+0f;
  const float f = large ? 0.5f * u - 1 : u - 1;
  return (x > 0 ? x : 0) + log(Binary32{large ? 1.0f : 0.0f, f + (large ? 0.5f * lost : lost)});
}

/// exp(|x|) / 2, which is finite wherever sinh and cosh are.
ONESTEP_FORMULA float half_exp(float x) {
  const Reduced32 r = reduce(clamped(std::fabs(x), kExpLimit32));
  return exp_of(r.n - 1, r.rest);
}
ONESTEP_FORMULA float sinh(float x) {
  const float a = std::fabs(x), x2 = x * x, half = half_exp(x), far = half - 0.25f / half;
  const float near =
      fused(x2 * a, polynomial(x2, std::array{1.0f / 6, 1.0f / 120, 1.0f / 5040, 1.0f / 362880, 1.0f / 39916800}), a);
  return std::copysign(a < 1 ? near : far, x);
}
ONESTEP_FORMULA float cosh(float x) {
  const float half = half_exp(x);
  return half + 0.25f / half;
}

/// x - t for t = tanh(x): where |x| < 1.25, x^3 / 3 with what its rounding loses, and x^3 times a polynomial of x^2.
ONESTEP_FORMULA float tanhshrink(float x, float t) {
  constexpr float third = 0x1.555556p-2f;  // the polynomial begins with what it lacks
  constexpr std::array c = {-0x1.555556p-27f, -0x1.1110e6p-3f, 0x1.ba0deep-5f,   -0x1.658abcp-6f, 0x1.1cf056p-7f,
                            -0x1.a98ec0p-9f,  0x1.0994a8p-10f, -0x1.ca65bcp-13f, 0x1.82015ep-16f};
  const float x2 = x * x, x3 = x * x2, x3_low = fused(x, x2, -x3) + x * fused(x, x, -x2);
  const float near = fused(x3, third, fused(x3, polynomial(x2, c), x3_low * third));
  return std::fabs(x) < 1.25f ? near : x - t;
}

ONESTEP_FORMULA float asinh(float x) {
  const float a = std::fabs(x);
  return std::copysign(log1p_or_log(a + a * (a / (1 + std::sqrt(1 + a * a))), a > 0x1p12f, a), x);
}
ONESTEP_FORMULA float acosh(float x) {
  const float t = x - 1, y = log1p_or_log(t + std::sqrt(t * (x + 1)), x > 0x1p12f, x);
  return x >= 1 ? y : kNaN32;
}
ONESTEP_FORMULA float atanh(float x) {
  const float a = std::fabs(x);
  return std::copysign(0.5f * log1p(2 * a / (1 - a)), x);
}

/// atan(z) for 0 <= z <= 1
ONESTEP_FORMULA float atan_of_part(float z) {
  constexpr std::array c = {-0x1.555546p-2f, 0x1.9993b8p-3f,  -0x1.24333ep-3f, 0x1.c14a66p-4f,  -0x1.5a278cp-4f,
                            0x1.e14890p-5f,  -0x1.05bb68p-5f, 0x1.72f568p-7f,  -0x1.ed930ep-10f};
  const float z2 = z * z;
  return fused(z * z2, polynomial(z2, c), z);
}
/// The angle of (x, y), both at least 0 and `quotient` the smaller over the larger.
ONESTEP_FORMULA float angle_of(float quotient, bool above) {
  const float y = atan_of_part(quotient);
  return above ? kHalfPi32 - (y - kHalfPiLow32) : y;
}
ONESTEP_FORMULA float atan(float x) {
  const float a = std::fabs(x);
  const bool above = a > 1;
  return std::copysign(angle_of(above ? 1 / a : a, above), x);
}
ONESTEP_FORMULA bool has_sign(float x) { return std::bit_cast<int32_t>(x) < 0; }
ONESTEP_FORMULA float atan2(float y, float x) {
  const float b = std::fabs(x), a = std::fabs(y), larger = a > b ? a : b, smaller = a > b ? b : a;
  const float quotient = smaller == larger ? (larger > 0 ? 1.0f : 0.0f) : smaller / larger;
  const float angle = angle_of(quotient, a > b);
  const float z = std::copysign(has_sign(x) ? 2 * kHalfPi32 - (angle - 2 * kHalfPiLow32) : angle, y);
  return x != x || y != y ? kNaN32 : z;
}

/// asin(z) - z for |z| <= 1/2
ONESTEP_FORMULA float asin_rest(float z) {
  constexpr std::array c = {0x1.555550p-3f, 0x1.3336f8p-4f, 0x1.6ce036p-5f, 0x1.03269ap-5f, 0x1.ec709cp-7f, 0x1.2d21f8p-5f};
  const float z2 = z * z;
  return z * z2 * polynomial(z2, c);
}
/// |x| up to 1/2, else sqrt((1 - |x|) / 2), whose asin is half of what that of |x| lacks of pi/2.
ONESTEP_FORMULA float asin_argument(float x) {
  const float a = std::fabs(x), root = std::sqrt(0.5f - 0.5f * a);
  return a > 0.5f ? root : a;
}
ONESTEP_FORMULA float asin(float x) {
  const float z = asin_argument(x), rest = asin_rest(z), most = kHalfPi32 - 2 * z, lost = (kHalfPi32 - most) - 2 * z;
  const float far = most + (lost + (kHalfPiLow32 - 2 * rest));
  return std::copysign(std::fabs(x) > 0.5f ? far : z + rest, x);
}
ONESTEP_FORMULA float acos(float x) {
  const float z = asin_argument(x), y = z + asin_rest(z), near = kHalfPi32 - (std::copysign(y, x) - kHalfPiLow32);
  const float left = 2 * kHalfPi32 - (2 * y - 2 * kHalfPiLow32), far = x < 0 ? left : 2 * y;
  return std::fabs(x) > 0.5f ? far : near;
}

/// erfinv(x) / x as a polynomial of w = -log(1 - x^2) or, above 5, of its root, as in Giles 2010 (Approximating the erfinv
/// function).
ONESTEP_FORMULA float erfinv(float x) {
  constexpr std::array near = {0x1.c5bf88p-1f,  0x1.db2a10p-3f,  0x1.7a6d22p-7f,   -0x1.31f5fap-9f, -0x1.0b5946p-13f,
                               0x1.75d74cp-15f, 0x1.0b4ecep-18f, -0x1.094662p-19f, 0x1.daa83ap-23f, -0x1.2e0e28p-27f};
  constexpr std::array far = {0x1.6a9efcp+1f,  0x1.006dc6p+0f,  0x1.3580cep-7f,   -0x1.f48470p-8f,  0x1.74b39ap-8f,
                              -0x1.d784fap-9f, 0x1.854eb8p-10f, -0x1.dc3ed6p-15f, -0x1.449c06p-12f, 0x1.e54a3ep-14f};
  const float a = std::fabs(x), rest = 1 - a, w = -log(binary_of_normal(rest * (1 + a)));
  const float y = x * (w < 5 ? polynomial(w, near) : polynomial(std::sqrt(w) - 3, far));
  return rest > 0 ? y : rest == 0 ? std::copysign(kInfinity32, x) : kNaN32;
}

}  // namespace onestep::portable::formulas
// NOLINTEND(bugprone-narrowing-conversions)
