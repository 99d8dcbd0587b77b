#pragma once
// x^y in float32 for any exponent: log and exp in double precision by their series, from +, -, *, / only, so that every
// instruction set gives the same bits. Included only by *.isa.cpp.
#include <cstdint>

namespace onestep::kernels {
namespace {

/// log(x) / ln 2 of a positive finite x: x = 2^e m, log(m) = 2 atanh(s) with s = (m - 1) / (m + 1), |s| < 0.172.
inline double log2_of(double x) {
  const int64_t u = __builtin_bit_cast(int64_t, x) - 0x3fe6a09e667f3bcd;  // minus the bits of sqrt(1/2)
  const int64_t e = u >> 52;
  const double m = __builtin_bit_cast(double, (u & 0xfffffffffffff) + 0x3fe6a09e667f3bcd);
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double series = 0;
  for (int k = 21; k >= 1; k -= 2) series = series * s2 + 1.0 / k;
  return static_cast<double>(e) + 2 / 0.69314718055994530942 * s * series;
}

/// 2^t for |t| < 1000.
inline double exp2_of(double t) {
  const double n = (t + 6755399441055744.0) - 6755399441055744.0;  // 1.5 * 2^52: rounds to the nearest integer
  const double r = (t - n) * 0.69314718055994530942;
  double series = 1;
  for (int k = 13; k >= 1; --k) series = series * r / k + 1;
  return series * __builtin_bit_cast(double, (static_cast<int64_t>(n) + 1023) << 52);
}

/// C's powf, special cases included.
inline float scalar_pow(float x, float y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return x + y;
  const float a = __builtin_fabsf(x), b = __builtin_fabsf(y);
  const bool integer = b >= 8388608.0f || static_cast<float>(static_cast<int32_t>(y)) == y;
  const bool odd = integer && b < 16777216.0f && (static_cast<int32_t>(y) & 1) != 0;
  float magnitude;
  if (a == 0 || a == __builtin_inff() || b == __builtin_inff()) {
    const bool grows = a == 1 ? true : (a > 1) == (y > 0);
    magnitude = a == 1 ? 1 : grows ? __builtin_inff() : 0.0f;
  } else {
    if (x < 0 && !integer) return __builtin_nanf("");
    const double t = static_cast<double>(y) * log2_of(static_cast<double>(a));
    magnitude = static_cast<float>(exp2_of(t > 200 ? 200 : t < -200 ? -200 : t));
  }
  return odd && __builtin_signbit(x) ? -magnitude : magnitude;
}

}  // namespace
}  // namespace onestep::kernels
