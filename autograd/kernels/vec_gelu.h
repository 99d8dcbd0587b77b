#pragma once
// GELU: x times its gate, Phi(x) or the approximation of it by tanh, and its derivative ("slope"). For |x| < 31/8, as nearly
// always, both are looked up as polynomials of an interval of |x|, in a third of the instructions of their formulas, which are
// for what is farther.
#include "autograd/kernels/gelu_table.h"
#include "autograd/kernels/vec_math.h"

namespace onestep::kernels {
namespace {

inline constexpr float kGeluNear = 3.875f;

/// The polynomial of the interval of a, 0 <= a < 31/8.
template <int N>
ONESTEP_INLINE Vec interval_polynomial(Vec a, const float (&center)[16], const float (&c)[N][16]) {
  const IVec interval = bits(a + splat(0x1.8p21f));  // the sum's last mantissa bit is worth 1/4
  const Vec x = a - lookup(center, interval);
  Vec y = lookup(c[N - 1], interval);
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) y = fma(y, x, lookup(c[i], interval));
  return y;
}

/// near(x) where |x| < 31/8, else far(x).
template <class NEAR, class FAR>
ONESTEP_INLINE Vec near_or_far(Vec x, NEAR near, FAR far) {
  const Mask is_near = abs(x) < splat(kGeluNear);
  if (all(is_near)) return near(x);
  return select(is_near, near(x), far(x));
}

template <class FAR>
ONESTEP_INLINE Vec gelu(Vec x, const GeluTable& table, FAR far) {
  const auto near = [&](Vec v) {
    const Vec tail = v * interval_polynomial(abs(v), table.center, table.gate);
    return select(v < splat(0.0f), tail, v - tail);
  };
  return near_or_far(x, near, far);
}

template <class FAR>
ONESTEP_INLINE Vec gelu_derivative(Vec x, const GeluTable& table, FAR far) {
  const auto near = [&](Vec v) {
    const Vec slope = interval_polynomial(abs(v), table.center, table.slope);
    return select(v < splat(0.0f), slope, splat(1.0f) - slope);
  };
  return near_or_far(x, near, far);
}

ONESTEP_RARE NormalParts rare_normal_parts(Vec x) { return normal_parts(abs(x)); }

/// x Phi(x). For x < 0 the power of two comes last, so that small results keep their precision.
ONESTEP_INLINE Vec gelu_erf(Vec x) {
  return gelu(x, kGeluErf, [](Vec v) {
    return gated(v, -15.0f, 15.0f, [](Vec factor, Vec near) {
      const Mask negative = near < splat(0.0f);
      const NormalParts n = rare_normal_parts(near);
      const Vec tail = scale(times_tail(select(negative, factor, splat(1.0f)), n), n.exponent);
      return select(negative, tail, fnma(factor, tail, factor));
    });
  });
}

/// Phi(x) + x exp(-x^2/2) / sqrt(2 pi).
ONESTEP_INLINE Vec gelu_erf_derivative(Vec x) {
  return gelu_derivative(x, kGeluErf, [](Vec v) {
    const Vec near = clamp(v, -15.0f, 15.0f);
    const NormalParts n = rare_normal_parts(near);
    const Vec gauss = scale(n.gauss.high, n.exponent), tail = gauss * n.ratio.high / n.sum.high;
    return fma(near * splat(0x1.988454p-2f), gauss, select(near < splat(0.0f), tail, splat(1.0f) - tail));
  });
}

/// factor sigmoid(z) where x sigmoid(z) is the approximation by tanh: z = 2 sqrt(2/pi) (x + 0.044715 x^3). Where z is -80 an
/// error of one ulp in z would be 60 ulp in the result, so z is a pair. -12 <= x <= 6.
ONESTEP_INLINE Vec times_tanh_gate(Vec factor, Vec x) {
  constexpr float kC1 = 0x1.988454p+0f, kC1Low = -0x1.857936p-25f;  // 2 sqrt(2/pi)
  constexpr float kC3 = 0x1.2444f2p-4f, kC3Low = 0x1.49b16ap-29f;   // 2 sqrt(2/pi) 0.044715
  const Pair square = two_product(x, x), cubic = two_product(splat(kC3), square.high);
  const Pair q = two_sum(splat(kC1), cubic.high);
  const Vec q_low = q.low + cubic.low + fma(splat(kC3), square.low, fma(splat(kC3Low), square.high, splat(kC1Low)));
  const Pair z = two_product(x, q.high);
  const ReducedExp reduced = reduce_exp(z.high);
  return rare_times_sigmoid(factor, {reduced.rest + fma(x, q_low, z.low), reduced.n});
}

ONESTEP_INLINE Vec gelu_tanh(Vec x) {
  return gelu(x, kGeluTanh, [](Vec v) { return gated(v, -12.0f, 6.0f, times_tanh_gate); });
}

/// At -|x| s - |x| s (1 - s) dz/dx with s = sigmoid(z), and the rest to one at |x|.
ONESTEP_INLINE Vec gelu_tanh_derivative(Vec x) {
  return gelu_derivative(x, kGeluTanh, [](Vec v) {
    constexpr float kC1 = 0x1.988454p+0f, kC3 = 0x1.2444f2p-4f, k3C3 = 0x1.b6676cp-3f;
    const Vec near = clamp(-abs(v), -12.0f, 0.0f), square = near * near, z = near * fma(splat(kC3), square, splat(kC1));
    const Vec s = rare_times_sigmoid(splat(1.0f), reduce_exp(z));
    const Vec slope = fma(near * fma(splat(k3C3), square, splat(kC1)), s * (splat(1.0f) - s), s);
    return select(v < splat(0.0f), slope, splat(1.0f) - slope);
  });
}

}  // namespace
}  // namespace onestep::kernels
