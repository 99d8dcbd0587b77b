#pragma once
// Functions looked up as polynomials of an interval of |x|.
#include "autograd/kernels/interval_tables.h"
#include "autograd/kernels/vec_math.h"

namespace onestep::kernels {
namespace {

/// first + c[1] x + c[2] x^2 + ... by the coefficients of each lane's interval.
template <int N>
ONESTEP_INLINE Vec interval_polynomial(Vec x, IVec interval, const float (&c)[N][16], Vec first) {
  Vec y = lookup(c[N - 1], interval);
#pragma GCC unroll 16
  for (int i = N - 2; i > 0; --i) y = fma(y, x, lookup(c[i], interval));
  return fma(y, x, first);
}

/// An odd function that is 1 from 59 widths of the table's first interval on.
ONESTEP_INLINE Vec odd_function(Vec x, const GrowingTable& t) {
  const Vec a = min(splat(59 * t.width), abs(x)), place = fma(a, splat(0.5f / t.width), splat(2.0f));
  const IVec interval = shift_right<21>(bits(place));  // two bits of the exponent, two of the mantissa
  const Vec first = select(place < splat(2.5f), a, lookup(t.c[0], interval));
  return with_sign_of(interval_polynomial(a - lookup(t.center, interval), interval, t.c, first), x);
}

ONESTEP_INLINE Vec tanh(Vec x) { return odd_function(x, kTanh); }
ONESTEP_INLINE Vec erf(Vec x) { return odd_function(x, kErf); }

}  // namespace
}  // namespace onestep::kernels
