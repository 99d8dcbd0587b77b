#pragma once
// GELU: x times its gate, Phi(x) or the approximation of it by tanh, and its derivative ("slope"). For |x| < 31/8, as nearly
// always, both are looked up as polynomials of an interval of |x|, in a third of the instructions of their formulas, which are
// for what is farther.
#include "autograd/kernels/vec_intervals.h"

namespace onestep::kernels {
namespace {

inline constexpr float kGeluNear = 3.875f;

/// The polynomial of the interval of a, 0 <= a < 31/8.
template <int N>
ONESTEP_INLINE Vec near_polynomial(Vec a, const float (&center)[16], const float (&c)[N][16]) {
  const IVec interval = bits(a + splat(0x1.8p21f));  // the sum's last mantissa bit is worth 1/4
  return interval_polynomial(a, interval, center, c, lookup(c[0], interval));
}

/// near(a) for a = |x| < 31/8, else far(a), whose result is 0 from 15 on.
template <class NEAR, class FAR>
ONESTEP_INLINE Vec near_or_far(Vec x, NEAR near, FAR far) {
  const Vec a = abs(x);
  const Mask is_near = a < splat(kGeluNear);
  if (all(is_near)) return near(a);
  return select(is_near, near(a), far(clamp(a, kGeluNear, 15.0f)));
}

/// `far` is |x| times the gate of -|x|.
template <class FAR>
ONESTEP_INLINE Vec gelu(Vec x, const GeluTable& table, FAR far) {
  const Vec tail = near_or_far(
      x, [&](Vec a) { return a * near_polynomial(a, table.center, table.gate); }, far);
  return select(x < splat(0.0f), x * splat(0.0f) - tail, x - tail);  // NaN for -inf as in torch
}

/// `far` is the derivative at -|x|.
template <class FAR>
ONESTEP_INLINE Vec gelu_derivative(Vec x, const GeluTable& table, FAR far) {
  const Vec slope = near_or_far(
      x, [&](Vec a) { return near_polynomial(a, table.center, table.slope); }, far);
  return select(x < splat(0.0f), slope, splat(1.0f) - slope);
}

/// a Phi(-a) exp(a^2/2) for 31/8 <= a <= 15, given w = 1 / a^2.
ONESTEP_INLINE Vec mills_polynomial(Vec w) {
  constexpr float kFirst = 0x1.98845p-2f, kFirstLow = 0x1.abbf9p-27f;
  constexpr float kMills[] = {kFirstLow,      -0x1.988054p-2f, 0x1.31c894p+0f, -0x1.737f02p+2f,
                              0x1.1183f0p+5f, -0x1.5aa936p+7f, 0x1.d7ecbep+8f};
  return splat(kFirst) + polynomial(w, kMills);
}

/// exp(-a^2/2), |a| <= 15.
ONESTEP_INLINE ExpParts gauss_parts(Vec a) { return exp_parts(two_product(a * splat(-0.5f), a)); }

/// x Phi(x).
ONESTEP_INLINE Vec gelu_erf(Vec x) {
  return gelu(x, kGeluErf, [](Vec a) { return times_exp(mills_polynomial(splat(1.0f) / (a * a)), gauss_parts(a)); });
}

/// Phi(x) + x exp(-x^2/2) / sqrt(2 pi).
ONESTEP_INLINE Vec gelu_erf_derivative(Vec x) {
  return gelu_derivative(x, kGeluErf, [](Vec a) {
    const Vec inverse = splat(1.0f) / a, ratio = mills_polynomial(inverse * inverse) * inverse;
    return times_exp(fnma(splat(0x1.988454p-2f), a, ratio), gauss_parts(a));
  });
}

/// z = 2 sqrt(2/pi) (x + 0.044715 x^3) and exp(-z), of the approximation by tanh x / (1 + exp(-z)).
inline constexpr float kTanhC1 = 0x1.988454p+0f, kTanhC1Low = -0x1.857936p-25f;  // 2 sqrt(2/pi)
inline constexpr float kTanhC3 = 0x1.2444f2p-4f, kTanhC3Low = 0x1.49b16ap-29f;   // 0.044715 times it

/// Where z is 80 an error of one ulp in z would be 60 ulp in the result, so z is a pair. exp(-z) is 0 from 12 on.
ONESTEP_INLINE ExpParts tanh_tail(Vec x) {
  const Vec a = clamp(x, 0.0f, 12.0f);
  const Pair square = two_product(a, a), cubic = two_product(splat(kTanhC3), square.high);
  const Pair q = two_sum(splat(kTanhC1), cubic.high);
  const Vec c3_low = fma(splat(kTanhC3), square.low, fma(splat(kTanhC3Low), square.high, splat(kTanhC1Low)));
  const Pair z = two_product(a, q.high);
  return exp_parts(Pair{-z.high, -fma(a, q.low + cubic.low + c3_low, z.low)});
}

ONESTEP_INLINE Vec gelu_tanh(Vec x) {
  return gelu(x, kGeluTanh, [](Vec a) {
    const ExpParts e = tanh_tail(a);
    return times_exp(fnma(a, scale(e.mantissa(), e.exponent), a), e);  // 1 / (1 + e) is 1 - e: e^2 is less than 1e-10
  });
}

/// At -|x| it is s - |x| s (1 - s) dz/dx with s = 1 / (1 + exp(z)), which is exp(-z) where x is far.
ONESTEP_INLINE Vec gelu_tanh_derivative(Vec x) {
  return gelu_derivative(x, kGeluTanh, [](Vec a) {
    constexpr float k3C3 = 0x1.b6676cp-3f;
    return times_exp(fnma(a, fma(splat(k3C3) * a, a, splat(kTanhC1)), splat(1.0f)), tanh_tail(a));
  });
}

}  // namespace
}  // namespace onestep::kernels
