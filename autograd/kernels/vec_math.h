#pragma once
// Elementary functions on 16 floats: our own minimax polynomials (Remez, coefficients rounded to float), built from
// operations that are exact or correctly rounded everywhere, so all instruction sets give the same bits.
#include "autograd/kernels/simd.h"

namespace onestep::kernels {
namespace {

/// c[0] + c[1] x + c[2] x^2 + ..., Horner with fma.
template <int N>
ONESTEP_INLINE Vec polynomial(Vec x, const float (&c)[N]) {
  Vec y = splat(c[N - 1]);
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) y = fma(y, x, splat(c[i]));
  return y;
}

/// A number as an unevaluated sum, low being a rounding error of high.
struct Pair {
  Vec high, low;
};
/// a + b exactly.
ONESTEP_INLINE Pair two_sum(Vec a, Vec b) {
  const Vec s = a + b, b_part = s - a;
  return {s, (a - (s - b_part)) + (b - b_part)};
}
/// The same where a is 0 or |a| >= |b|, or a is a multiple of what the last bit of b is worth (Dekker 1971).
ONESTEP_INLINE Pair fast_two_sum(Vec a, Vec b) {
  const Vec s = a + b;
  return {s, b - (s - a)};
}
/// a b exactly.
ONESTEP_INLINE Pair two_product(Vec a, Vec b) {
  const Vec p = a * b;
  return {p, fms(a, b, p)};
}
/// exp(x) = (1 + part) 2^exponent with |part| < 0.42.
struct ExpParts {
  Vec part;
  IVec exponent;

  ONESTEP_INLINE Vec mantissa() const { return splat(1.0f) + part; }
};

/// x = n ln 2 + rest with n whole, for |x| <= 170.
struct ReducedExp {
  Vec rest;
  IVec n;
};
ONESTEP_INLINE ReducedExp reduce_exp(Vec x) {
  constexpr float kLn2High = 0x1.62e43p-1f, kLn2Low = -0x1.05c61p-29f;  // n * kLn2High leaves x without rounding
  const Rounded n = round_nearest(x * splat(0x1.715476p+0f));
  return {fnma(n.value, splat(kLn2Low), fnma(n.value, splat(kLn2High), x)), n.integer};
}
ONESTEP_INLINE ExpParts exp_parts(ReducedExp x) {
  constexpr float kExp[] = {0.49999994f, 0.166665211f, 0.041668389f, 0.00836872403f, 0.00138145837f};
  return {fma(x.rest * x.rest, polynomial(x.rest, kExp), x.rest), x.n};
}
ONESTEP_INLINE ExpParts exp_parts(Vec x) { return exp_parts(reduce_exp(x)); }
ONESTEP_INLINE ExpParts exp_parts(Pair x) {
  const ReducedExp high = reduce_exp(x.high);
  return exp_parts(ReducedExp{high.rest + x.low, high.n});
}

/// x 2^n for finite x where n is 0 or neither x nor the result is subnormal: n is added to the exponent.
ONESTEP_INLINE Vec scale_normal(Vec x, IVec n) { return as_float(bits(x) + shift_left<23>(n)); }

/// Overflows to inf, goes through the subnormals to 0.
ONESTEP_INLINE Vec exp(Vec x) {
  if (all(abs(x) < splat(86.0f))) {  // as nearly always
    const ExpParts e = exp_parts(x);
    return scale_normal(e.mantissa(), e.exponent);
  }
  const ExpParts e = exp_parts(clamp(x, -104.0f, 89.0f));
  const Vec mantissa = select(x < splat(-104.0f), splat(0.0f), e.mantissa());  // masked scores: rounding to 0 is slow
  return scale(mantissa, e.exponent);
}

/// q exp(x) by the parts of exp(x).
ONESTEP_INLINE Vec times_exp(Vec q, ExpParts e) { return scale(fma(q, e.part, q), e.exponent); }

/// x = 2^exponent (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
struct BinaryParts {
  Vec exponent, f;
};
/// Of normal x > 0.
ONESTEP_INLINE BinaryParts parts_of_normal(Vec x) {
  const IVec i = bits(x) - splat(0x3f3504f3);  // minus the bits of sqrt(1/2)
  const Vec m = as_float((i & splat(0x007fffff)) + splat(0x3f3504f3));
  return {to_float(shift_right<23>(i)), m - splat(1.0f)};
}
/// Of finite x > 0.
ONESTEP_INLINE BinaryParts binary_parts(Vec x) {
  const Mask subnormal = x < splat(0x1p-126f);
  const BinaryParts parts = parts_of_normal(select(subnormal, x * splat(0x1p+24f), x));
  return {parts.exponent - select(subnormal, splat(24.0f), splat(0.0f)), parts.f};
}
/// A logarithm of x by a function of its parts.
template <class F>
ONESTEP_INLINE Vec log_by_parts(Vec x, const F& f) {
  if (all(x > splat(0x1p-126f)) && all(x < splat(kInf))) return f(parts_of_normal(x));  // as nearly always
  const Vec value = f(binary_parts(x));
  const Vec special = select(x == splat(0.0f), splat(-kInf), splat(__builtin_nanf("")));  // 0, negative or NaN
  return select(x > splat(0.0f), select(x == splat(kInf), x, value), special);
}

/// exponent ln 2 + f - f^2/2 + f^3 Q(f).
ONESTEP_INLINE Vec log(Vec x) {
  static constexpr float kLog[] = {0.333333135f,  -0.250000089f, 0.200021192f,  -0.166679963f, 0.142195523f,
                                   -0.124055885f, 0.118881591f,  -0.116756544f, 0.0674665123f};
  return log_by_parts(x, [](BinaryParts b) {
    const Vec f = b.f, f2 = f * f, tail = fma(f * f2, polynomial(f, kLog), b.exponent * splat(-0x1.05c61p-29f));
    return fma(b.exponent, splat(0x1.62e43p-1f), f + fma(f2, splat(-0.5f), tail));
  });
}

/// A logarithm is exponent c + f / l + f^2 Q(f), l the natural logarithm of its base: c = ln 2 / l in two numbers, the first of
/// 15 bits, and 1 / l in two, too.
struct Base {
  float c, c_low, inverse, inverse_low;
  float q[9];
};
inline constexpr Base kBase2 = {1,
                                0,
                                0x1.715476p+0f,
                                0x1.4ae0c0p-26f,
                                {-0.721347332f, 0.48089838f, -0.360697895f, 0.288558871f, -0.23958683f, 0.20475094f,
                                 -0.191439673f, 0.185357884f, -0.108073868f}};
inline constexpr Base kBase10 = {0x1.3440p-2f,
                                 0x1.3509f8p-18f,
                                 0x1.bcb7b2p-2f,
                                 -0x1.5b235ep-27f,
                                 {-0.217147186f, 0.144764841f, -0.108580753f, 0.086864613f, -0.0721251145f, 0.0616419278f,
                                  -0.0576187596f, 0.0557612889f, -0.0325112566f}};
ONESTEP_INLINE Vec log_to_base(const Base& base, Vec x) {
  return log_by_parts(x, [&](BinaryParts b) {
    const Pair part = two_product(b.f, splat(base.inverse));
    const Vec part_low = fma(b.f * b.f, polynomial(b.f, base.q), fma(b.f, splat(base.inverse_low), part.low));
    const Pair sum = fast_two_sum(b.exponent * splat(base.c), part.high);
    return sum.high + (sum.low + fma(b.exponent, splat(base.c_low), part_low));
  });
}

/// factor / (1 + exp(-z)) by the reduced z, -170 <= z <= 80. The power of two goes to the numerator, so that small results keep
/// their precision, down to the subnormals unless QUICK, which is for |n| < 126 where neither factor 2^n nor the result is
/// subnormal or too large. The bits are the same.
template <bool QUICK>
ONESTEP_INLINE Vec times_sigmoid(Vec factor, ReducedExp z) {
  const Vec part = exp_parts(ReducedExp{-z.rest, z.n}).part;  // exp(-z) = (1 + part) / power
  const Vec one = splat(1.0f), power = QUICK ? exp2_int(z.n) : scale(one, z.n);
  const Vec sum = one + power, lost = power - (sum - one);
  const Vec below = sum + (part + lost);
  return QUICK ? scale_normal(factor, z.n) / below : scale(factor / below, z.n);
}

/// Whether times_sigmoid can be quick.
ONESTEP_INLINE bool all_moderate(Vec z) { return all(abs(z) < splat(80.0f)); }

ONESTEP_INLINE Vec sigmoid(Vec x) {
  if (all_moderate(x)) return times_sigmoid<true>(splat(1.0f), reduce_exp(x));
  return times_sigmoid<false>(splat(1.0f), reduce_exp(clamp(x, -120.0f, 40.0f)));
}

ONESTEP_INLINE Vec silu(Vec x) {
  if (all_moderate(x)) return times_sigmoid<true>(x, reduce_exp(x));
  const Vec factor = select(x < splat(-120.0f), x * splat(0.0f), x);  // a zero with its sign, NaN for -inf as in torch
  return times_sigmoid<false>(factor, reduce_exp(clamp(x, -120.0f, 40.0f)));
}

}  // namespace
}  // namespace onestep::kernels
