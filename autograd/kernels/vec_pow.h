#pragma once
// x^y in float32 for any exponents: logarithm and exponential to base 2 in double precision by minimax polynomials (Remez), off
// by 2^-53 and 2^-39.7, from operations that are correctly rounded everywhere, so that every instruction set gives the same bits.
// Loops over 16 lanes that the compiler turns into vectors.
#include <cstdint>

#include "autograd/kernels/simd.h"

namespace onestep::kernels {
namespace {

/// c[0] + c[1] x + c[2] x^2 + ... by Estrin's scheme: neighbours first, as they do not wait for one another.
template <int N>
ONESTEP_INLINE double series(double x, const double (&c)[N]) {
  if constexpr (N == 1) {
    return c[0];
  } else {
    double sums[(N + 1) / 2];
#pragma GCC unroll 8
    for (int i = 0; i < N / 2; ++i) sums[i] = c[2 * i] + c[2 * i + 1] * x;
    if constexpr (N % 2 != 0) sums[N / 2] = c[N - 1];
    return series(x * x, sums);
  }
}

/// log(x) / ln 2 of 2^-149 <= x < 2^128: x = 2^e m, log(m) = 2 atanh(s) with s = (m - 1) / (m + 1), |s| < 0.172.
ONESTEP_INLINE double log2_of(double x) {
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;  // its bits
  const uint64_t u = __builtin_bit_cast(uint64_t, x) - kSqrtHalf;
  const double e = __builtin_bit_cast(double, ((u + (uint64_t{1024} << 52)) >> 52) | 0x4330000000000000) - (0x1p52 + 1024);
  const double m = __builtin_bit_cast(double, (u & 0xfffffffffffff) + kSqrtHalf);
  const double s = (m - 1) / (m + 1);
  constexpr double kLog2[] = {2.8853900817779268, 0.9617966939248286, 0.5770780171101384, 0.4121984179725803,
                              0.3206154865300769, 0.2614687112083967, 0.24266101042994112};
  return e + s * series(s * s, kLog2);
}

/// 2^t for |t| < 1000.
ONESTEP_INLINE double exp2_of(double t) {
  constexpr double kMagic = 0x1.8p52;  // the sum's last bit is worth 1
  const double shifted = t + kMagic, rest = t - (shifted - kMagic);
  constexpr double kExp2[] = {1,
                              0.6931471805461495,
                              0.24022650695554096,
                              0.05550410940710272,
                              0.009618129219471987,
                              0.0013333450897933287,
                              0.0001540341544081223,
                              1.5310012482861462e-05,
                              1.326350445566891e-06};
  return series(rest, kExp2) * __builtin_bit_cast(double, (__builtin_bit_cast(uint64_t, shifted) + 1023) << 52);
}

/// C's powf where powers is not for it.
inline float special_power(float x, float y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return x + y;
  const float a = __builtin_fabsf(x), b = __builtin_fabsf(y);
  if (a != 0 && a != kInf && b != kInf) return __builtin_nanf("");  // a negative number to a fraction
  const bool odd = b < 0x1p24f && static_cast<float>(static_cast<int32_t>(y)) == y && (static_cast<int32_t>(y) & 1) != 0;
  const float magnitude = a == 1 ? 1 : (a > 1) == (y > 0) ? kInf : 0;
  return odd && __builtin_signbit(x) ? -magnitude : magnitude;
}

/// x where it is wanted, else `other`; without a branch, which would keep the compiler from vectors.
ONESTEP_INLINE float if_wanted(bool wanted, float x, float other) {
  const uint32_t all = 0 - static_cast<uint32_t>(wanted);
  return __builtin_bit_cast(float, (__builtin_bit_cast(uint32_t, x) & all) | (__builtin_bit_cast(uint32_t, other) & ~all));
}

/// z[i] = x[i]^y[i] for 16 lanes.
ONESTEP_INLINE void powers(const float* x, const float* y, float* z) {
  float base[kLanes];
  double t[kLanes];
  uint32_t sign[kLanes], special[kLanes], any_special = 0;
  for (int i = 0; i < kLanes; ++i) {
    const float a = __builtin_fabsf(x[i]), b = __builtin_fabsf(y[i]);
    const float countable = if_wanted(b < 0x1p24f, y[i], 0.0f);  // what is larger is even
    const auto whole = static_cast<int32_t>(countable);
    const bool integer = static_cast<float>(whole) == countable;
    const bool usual = (a > 0.0f) & (a < kInf) & (b < kInf) & ((x[i] > 0.0f) | integer);
    base[i] = if_wanted(usual, a, 1.0f);
    sign[i] = __builtin_bit_cast(uint32_t, x[i]) & (static_cast<uint32_t>(whole) << 31);
    special[i] = static_cast<uint32_t>(!usual);
    any_special |= special[i];
  }
  for (int i = 0; i < kLanes; ++i) {
    const double exponent = static_cast<double>(y[i]) * log2_of(static_cast<double>(base[i]));
    t[i] = exponent > 200 ? 200 : exponent < -200 ? -200 : exponent;
  }
  for (int i = 0; i < kLanes; ++i) {
    const auto magnitude = static_cast<float>(exp2_of(t[i]));
    z[i] = __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, magnitude) | sign[i]);
  }
  for (int i = 0; any_special != 0 && i < kLanes; ++i)
    if (special[i] != 0) z[i] = special_power(x[i], y[i]);
}

}  // namespace
}  // namespace onestep::kernels
