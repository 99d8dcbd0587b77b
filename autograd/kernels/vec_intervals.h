#pragma once
// Functions looked up as polynomials of an interval of |x|.
#include "autograd/kernels/interval_tables.h"
#include "autograd/kernels/vec_math.h"

namespace onestep::kernels {
namespace {

/// first + c[1] x + c[2] x^2 + ..., x = a - center, by the center and the coefficients of each lane's interval.
template <int N>
ONESTEP_INLINE Vec interval_polynomial(Vec a, IVec interval, const float (&center)[16], const float (&c)[N][16], Vec first) {
  const Vec x = a - lookup(center, interval);
  Vec y = lookup(c[N - 1], interval);
#pragma GCC unroll 16
  for (int i = N - 2; i > 0; --i) y = fma(y, x, lookup(c[i], interval));
  return fma(y, x, first);
}

/// The interval of a table for a = |x|, up to 59 widths of the first one.
struct GrowingInterval {
  Vec a, place;
  IVec index;
};
template <int N>
ONESTEP_INLINE GrowingInterval growing_interval(Vec x, const GrowingTable<N>& t) {
  const Vec a = min(splat(59 * t.width), abs(x)), place = fma(a, splat(0.5f / t.width), splat(2.0f));
  return {a, place, shift_right<21>(bits(place))};  // two bits of the exponent, two of the mantissa
}

/// An odd function that is 1 from 59 widths on.
template <int N>
ONESTEP_INLINE Vec odd_function(Vec x, const GrowingTable<N>& t) {
  const GrowingInterval at = growing_interval(x, t);
  const Vec first = select(at.place < splat(2.5f), at.a, lookup(t.c[0], at.index));
  return with_sign_of(interval_polynomial(at.a, at.index, t.center, t.c, first), x);
}

ONESTEP_INLINE Vec tanh(Vec x) { return odd_function(x, kTanh); }
ONESTEP_INLINE Vec erf(Vec x) { return odd_function(x, kErf); }

/// erfc(|x|) is exp(-x^2) times a function that does not vanish.
ONESTEP_INLINE Vec erfc(Vec x) {
  const GrowingInterval at = growing_interval(x, kErfcx);
  const Vec first = lookup(kErfcx.c[0], at.index);
  const Vec ratio = interval_polynomial(at.a, at.index, kErfcx.center, kErfcx.c, first);
  const Vec tail = times_exp(ratio, exp_parts(two_product(-at.a, at.a)));
  return select(x < splat(0.0f), splat(2.0f) - tail, tail);
}

}  // namespace
}  // namespace onestep::kernels
