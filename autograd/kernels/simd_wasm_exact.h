#pragma once
// Fused multiply-add where there is none, made of doubles. The product of two floats is exact in double; its sum s with the
// third is rounded to 53 bits and once more to 24. The second rounding meets a tie that is none only where s lies half way
// between two floats, or where the result is subnormal and its ties lie elsewhere. Sums where that may be are in doubt, and are
// computed again with s rounded to odd, which no further rounding can spoil (Boldo and Melquiond 2008).

namespace onestep::kernels {
namespace {

/// Two floats of a register as doubles, and back.
ONESTEP_INLINE v128_t low_doubles(v128_t x) { return wasm_f64x2_promote_low_f32x4(x); }
ONESTEP_INLINE v128_t high_doubles(v128_t x) { return low_doubles(wasm_i64x2_shuffle(x, x, 1, 1)); }
ONESTEP_INLINE v128_t to_floats(v128_t low, v128_t high) {
  return wasm_i32x4_shuffle(wasm_f32x4_demote_f64x2_zero(low), wasm_f32x4_demote_f64x2_zero(high), 0, 1, 4, 5);
}

/// Whether sums as doubles may be rounded wrongly as floats. Of both words of each it looks at what a shift by 3 leaves: in the
/// lower one that is INT32_MIN just where the sum is half way between two floats; in the upper one, as a signed number, it
/// is less than that of 2^-126 where the float is subnormal, and not for zero, infinity and NaN. What is below 2^-255, where
/// the order turns, is zero as a float either way. The least is kept, since comparing takes longer.
struct Doubt {
  static constexpr bool kPossible = true;
  v128_t least = wasm_i32x4_const(0, 0, 0, 0);

  ONESTEP_INLINE void add(v128_t s) { least = wasm_i32x4_min(least, wasm_i32x4_shl(s, 3)); }
};
ONESTEP_INLINE bool is_doubtful(const Doubt& doubt) {
  constexpr int32_t kTie = INT32_MIN + 1, kNormal = static_cast<int32_t>(0x381u << 23);  // 2^-126 has the exponent 0x381
  return wasm_v128_any_true(wasm_i32x4_lt(doubt.least, wasm_i32x4_const(kTie, kNormal, kTie, kNormal)));
}

/// The product of floats as doubles plus c, rounded to odd.
ONESTEP_INLINE v128_t odd_sum(v128_t product, v128_t c) {
  const v128_t s = wasm_f64x2_add(product, c), part = wasm_f64x2_sub(s, product);
  const v128_t error = wasm_f64x2_add(wasm_f64x2_sub(product, wasm_f64x2_sub(s, part)), wasm_f64x2_sub(c, part));
  const v128_t inexact = wasm_f64x2_gt(wasm_f64x2_abs(error), wasm_f64x2_const(0, 0));  // not for infinity and NaN
  const v128_t rounded_up = wasm_i64x2_shr(wasm_v128_xor(s, error), 63);                // in magnitude: -1
  const v128_t down = wasm_i64x2_add(s, wasm_v128_and(rounded_up, inexact));
  return wasm_v128_or(down, wasm_v128_and(inexact, wasm_i64x2_const(1, 1)));
}

/// a b + c with one rounding, whatever they are.
[[gnu::noinline]] Vec careful_fma(Vec a, Vec b, Vec c) {
  return quads<Vec>([&](int i) {
    const v128_t low = odd_sum(wasm_f64x2_mul(low_doubles(a.q[i]), low_doubles(b.q[i])), low_doubles(c.q[i]));
    const v128_t high = odd_sum(wasm_f64x2_mul(high_doubles(a.q[i]), high_doubles(b.q[i])), high_doubles(c.q[i]));
    return to_floats(low, high);
  });
}
/// a b + c with one rounding. A call: in place it would be a fifth of the module.
[[gnu::noinline]] Vec fma(Vec a, Vec b, Vec c) {
  Doubt doubt;
  const Vec sum = quads<Vec>([&](int i) {
    const v128_t low = wasm_f64x2_add(wasm_f64x2_mul(low_doubles(a.q[i]), low_doubles(b.q[i])), low_doubles(c.q[i]));
    const v128_t high = wasm_f64x2_add(wasm_f64x2_mul(high_doubles(a.q[i]), high_doubles(b.q[i])), high_doubles(c.q[i]));
    doubt.add(low);
    doubt.add(high);
    return to_floats(low, high);
  });
  if (is_doubtful(doubt)) [[unlikely]]
    return careful_fma(a, b, c);
  return sum;
}
/// c - a b with one rounding.
ONESTEP_INLINE Vec fnma(Vec a, Vec b, Vec c) {
  return fma(quads<Vec>([&](int i) { return wasm_f32x4_neg(a.q[i]); }), b, c);
}

/// See simd.h. Eight floats as doubles: a sum stays where the next product needs it.
struct FloatReg {
  v128_t d[4];
};
template <class F>
ONESTEP_INLINE FloatReg pairs(F f) {
  return {{f(0), f(1), f(2), f(3)}};
}
ONESTEP_INLINE FloatReg splat_reg(float x) {
  return pairs([=](int) { return wasm_f64x2_splat(static_cast<double>(x)); });
}
ONESTEP_INLINE FloatReg load_reg(const float* p) {
  return pairs([=](int i) { return low_doubles(wasm_v128_load64_zero(p + 2 * i)); });
}
ONESTEP_INLINE FloatReg load_reg_first(const float* p, int64_t n) {
  float lanes[8] = {};
  for (int64_t i = 0; i < 8 && i < n; ++i) lanes[i] = p[i];
  return load_reg(lanes);
}
ONESTEP_INLINE void store_reg(float* p, FloatReg x) {
  wasm_v128_store(p, to_floats(x.d[0], x.d[1]));
  wasm_v128_store(p + 4, to_floats(x.d[2], x.d[3]));
}
ONESTEP_INLINE void store_reg_first(float* p, FloatReg x, int64_t n) {
  float lanes[8];
  store_reg(lanes, x);
  for (int64_t i = 0; i < 8 && i < n; ++i) p[i] = lanes[i];
}
/// The nearest floats. The minimum of two equals keeps clang 20 from making one step of the two, which it then does lane by
/// lane.
ONESTEP_INLINE v128_t rounded(v128_t x) {
  const v128_t floats = wasm_f32x4_demote_f64x2_zero(x);
  return low_doubles(wasm_f32x4_pmin(floats, floats));
}
/// A double is wide enough for the sum of two floats to be rounded twice (Figueroa 1995).
ONESTEP_INLINE FloatReg operator+(FloatReg a, FloatReg b) {
  return pairs([&](int i) { return rounded(wasm_f64x2_add(a.d[i], b.d[i])); });
}
ONESTEP_INLINE FloatReg careful_fma(FloatReg a, FloatReg b, FloatReg c) {
  return pairs([&](int i) { return rounded(odd_sum(wasm_f64x2_mul(a.d[i], b.d[i]), c.d[i])); });
}
/// a b + c, with one rounding if there is no doubt in the end.
ONESTEP_INLINE FloatReg fma(FloatReg a, FloatReg b, FloatReg c, Doubt& doubt) {
  return pairs([&](int i) {
    const v128_t s = wasm_f64x2_add(wasm_f64x2_mul(a.d[i], b.d[i]), c.d[i]);
    doubt.add(s);
    return rounded(s);
  });
}
ONESTEP_INLINE FloatReg fma(FloatReg a, FloatReg b, FloatReg c) {
  Doubt doubt;
  const FloatReg sum = fma(a, b, c, doubt);
  if (is_doubtful(doubt)) [[unlikely]]
    return careful_fma(a, b, c);
  return sum;
}
ONESTEP_INLINE void keep(FloatReg) {}

ONESTEP_INLINE DoubleReg fma(DoubleReg a, DoubleReg b, DoubleReg c) {
  double x[8], y[8], sum[8];
  store_reg(x, a);
  store_reg(y, b);
  store_reg(sum, c);
  for (int i = 0; i < 8; ++i) sum[i] = __builtin_fma(x[i], y[i], sum[i]);
  return load_reg(sum);
}

}  // namespace
}  // namespace onestep::kernels
