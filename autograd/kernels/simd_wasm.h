#pragma once
// simd.h on WebAssembly's 128-bit registers: four of them. Its fused multiply-add is in one of two headers: of doubles, the
// same on every machine, or the relaxed instruction, which only some machines round once.
#include <wasm_simd128.h>

#include <cstdint>

namespace onestep::kernels {
namespace {

struct Vec {
  v128_t q[4];
};
struct IVec {
  v128_t q[4];
};
struct Mask {
  v128_t q[4];
};

/// f(i) for each of four registers.
template <class R, class F>
ONESTEP_INLINE R quads(F f) {
  return R{{f(0), f(1), f(2), f(3)}};
}

ONESTEP_INLINE Vec splat(float x) {
  return quads<Vec>([=](int) { return wasm_f32x4_splat(x); });
}
ONESTEP_INLINE IVec splat(int32_t x) {
  return quads<IVec>([=](int) { return wasm_i32x4_splat(x); });
}
ONESTEP_INLINE Mask first_lanes(int64_t n) {
  const v128_t count = wasm_i32x4_splat(n < 16 ? static_cast<int32_t>(n) : 16), place = wasm_i32x4_const(0, 1, 2, 3);
  return quads<Mask>([&](int i) { return wasm_i32x4_gt(count, wasm_i32x4_add(place, wasm_i32x4_splat(4 * i))); });
}

ONESTEP_INLINE Vec load(const float* p) {
  return quads<Vec>([=](int i) { return wasm_v128_load(p + 4 * i); });
}
ONESTEP_INLINE void store(float* p, Vec x) {
  for (int i = 0; i < 4; ++i) wasm_v128_store(p + 4 * i, x.q[i]);
}
/// The first n of 16 lanes; the others are 0 and their memory is not touched.
ONESTEP_INLINE Vec load_first(const float* p, int64_t n) {
  float lanes[16] = {};
  for (int64_t i = 0; i < 16 && i < n; ++i) lanes[i] = p[i];
  return load(lanes);
}
ONESTEP_INLINE void store_first(float* p, Vec x, int64_t n) {
  float lanes[16];
  store(lanes, x);
  for (int64_t i = 0; i < 16 && i < n; ++i) p[i] = lanes[i];
}

ONESTEP_INLINE Vec operator+(Vec a, Vec b) {
  return quads<Vec>([&](int i) { return wasm_f32x4_add(a.q[i], b.q[i]); });
}
ONESTEP_INLINE Vec operator-(Vec a, Vec b) {
  return quads<Vec>([&](int i) { return wasm_f32x4_sub(a.q[i], b.q[i]); });
}
ONESTEP_INLINE Vec operator*(Vec a, Vec b) {
  return quads<Vec>([&](int i) { return wasm_f32x4_mul(a.q[i], b.q[i]); });
}
ONESTEP_INLINE Vec operator/(Vec a, Vec b) {
  return quads<Vec>([&](int i) { return wasm_f32x4_div(a.q[i], b.q[i]); });
}
ONESTEP_INLINE Vec sqrt(Vec x) {
  return quads<Vec>([&](int i) { return wasm_f32x4_sqrt(x.q[i]); });
}
/// a < b ? a : b, and a > b ? a : b.
ONESTEP_INLINE Vec min(Vec a, Vec b) {
  return quads<Vec>([&](int i) { return wasm_f32x4_pmin(b.q[i], a.q[i]); });
}
ONESTEP_INLINE Vec max(Vec a, Vec b) {
  return quads<Vec>([&](int i) { return wasm_f32x4_pmax(b.q[i], a.q[i]); });
}

ONESTEP_INLINE Mask operator<(Vec a, Vec b) {
  return quads<Mask>([&](int i) { return wasm_f32x4_lt(a.q[i], b.q[i]); });
}
ONESTEP_INLINE Mask operator>(Vec a, Vec b) {
  return quads<Mask>([&](int i) { return wasm_f32x4_gt(a.q[i], b.q[i]); });
}
ONESTEP_INLINE Mask operator==(Vec a, Vec b) {
  return quads<Mask>([&](int i) { return wasm_f32x4_eq(a.q[i], b.q[i]); });
}
ONESTEP_INLINE Mask unordered(Vec a, Vec b) {
  return quads<Mask>([&](int i) { return wasm_v128_or(wasm_f32x4_ne(a.q[i], a.q[i]), wasm_f32x4_ne(b.q[i], b.q[i])); });
}
ONESTEP_INLINE bool all(Mask m) {
  return wasm_i32x4_all_true(wasm_v128_and(wasm_v128_and(m.q[0], m.q[1]), wasm_v128_and(m.q[2], m.q[3])));
}
ONESTEP_INLINE bool any(Mask m) {
  return wasm_v128_any_true(wasm_v128_or(wasm_v128_or(m.q[0], m.q[1]), wasm_v128_or(m.q[2], m.q[3])));
}
/// m ? a : b
ONESTEP_INLINE Vec select(Mask m, Vec a, Vec b) {
  return quads<Vec>([&](int i) { return wasm_v128_bitselect(a.q[i], b.q[i], m.q[i]); });
}
ONESTEP_INLINE IVec select(Mask m, IVec a, IVec b) {
  return quads<IVec>([&](int i) { return wasm_v128_bitselect(a.q[i], b.q[i], m.q[i]); });
}

/// table[the last four bits of each lane]
ONESTEP_INLINE Vec lookup(const float (&table)[16], IVec place) {
  int32_t places[16];
  float found[16];
  for (int i = 0; i < 4; ++i) wasm_v128_store(places + 4 * i, place.q[i]);
  for (int i = 0; i < 16; ++i) found[i] = table[places[i] & 15];
  return load(found);
}

ONESTEP_INLINE IVec bits(Vec x) { return {{x.q[0], x.q[1], x.q[2], x.q[3]}}; }
ONESTEP_INLINE Vec as_float(IVec x) { return {{x.q[0], x.q[1], x.q[2], x.q[3]}}; }
ONESTEP_INLINE Vec to_float(IVec x) {
  return quads<Vec>([&](int i) { return wasm_f32x4_convert_i32x4(x.q[i]); });
}
ONESTEP_INLINE IVec operator+(IVec a, IVec b) {
  return quads<IVec>([&](int i) { return wasm_i32x4_add(a.q[i], b.q[i]); });
}
ONESTEP_INLINE IVec operator-(IVec a, IVec b) {
  return quads<IVec>([&](int i) { return wasm_i32x4_sub(a.q[i], b.q[i]); });
}
ONESTEP_INLINE IVec operator&(IVec a, IVec b) {
  return quads<IVec>([&](int i) { return wasm_v128_and(a.q[i], b.q[i]); });
}
ONESTEP_INLINE IVec operator|(IVec a, IVec b) {
  return quads<IVec>([&](int i) { return wasm_v128_or(a.q[i], b.q[i]); });
}
ONESTEP_INLINE IVec operator^(IVec a, IVec b) {
  return quads<IVec>([&](int i) { return wasm_v128_xor(a.q[i], b.q[i]); });
}
ONESTEP_INLINE Mask operator==(IVec a, IVec b) {
  return quads<Mask>([&](int i) { return wasm_i32x4_eq(a.q[i], b.q[i]); });
}
template <int N>
ONESTEP_INLINE IVec shift_left(IVec x) {
  return quads<IVec>([&](int i) { return wasm_i32x4_shl(x.q[i], N); });
}
/// Keeps the sign.
template <int N>
ONESTEP_INLINE IVec shift_right(IVec x) {
  return quads<IVec>([&](int i) { return wasm_i32x4_shr(x.q[i], N); });
}

/// Lane i meets i + 8, then i + 4, i + 2 and i + 1.
template <class F>
ONESTEP_INLINE float fold(Vec x, F f) {
  const v128_t four = f(f(x.q[0], x.q[2]), f(x.q[1], x.q[3]));
  const v128_t two = f(four, wasm_i32x4_shuffle(four, four, 2, 3, 0, 1));
  return wasm_f32x4_extract_lane(f(two, wasm_i32x4_shuffle(two, two, 1, 0, 3, 2)), 0);
}
/// The sum of the 16 lanes.
ONESTEP_INLINE float sum(Vec x) {
  return fold(x, [](v128_t a, v128_t b) { return wasm_f32x4_add(a, b); });
}
/// The largest of the 16 lanes, none of them NaN.
ONESTEP_INLINE float max(Vec x) {
  return fold(x, [](v128_t a, v128_t b) { return wasm_f32x4_pmax(b, a); });
}

/// to[c * to_step + r] = rows[r][c] for r < ROWS, c < 8, in blocks of 4 x 4.
template <int ROWS>
ONESTEP_INLINE void transpose(const float* const (&rows)[ROWS], float* to, int64_t to_step) {
  for (int r = 0; r < ROWS; r += 4) {
    for (int c = 0; c < 8; c += 4) {
      const v128_t a = wasm_v128_load(rows[r] + c), b = wasm_v128_load(rows[r + 1] + c), d = wasm_v128_load(rows[r + 2] + c),
                   e = wasm_v128_load(rows[r + 3] + c);
      const v128_t ab_low = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), ab_high = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7),
                   de_low = wasm_i32x4_shuffle(d, e, 0, 4, 1, 5), de_high = wasm_i32x4_shuffle(d, e, 2, 6, 3, 7);
      float* const at = to + c * to_step + r;
      wasm_v128_store(at, wasm_i64x2_shuffle(ab_low, de_low, 0, 2));
      wasm_v128_store(at + to_step, wasm_i64x2_shuffle(ab_low, de_low, 1, 3));
      wasm_v128_store(at + 2 * to_step, wasm_i64x2_shuffle(ab_high, de_high, 0, 2));
      wasm_v128_store(at + 3 * to_step, wasm_i64x2_shuffle(ab_high, de_high, 1, 3));
    }
  }
}
template <int ROWS>
ONESTEP_INLINE void transpose(const double* const (&rows)[ROWS], double* to, int64_t to_step) {
  for (int r = 0; r < ROWS; ++r) {
    for (int c = 0; c < 8; ++c) to[c * to_step + r] = rows[r][c];
  }
}

/// See simd.h. As wide as the packing of panels wants at least.
struct DoubleReg {
  v128_t v[4];
};
ONESTEP_INLINE DoubleReg splat_reg(double x) {
  return quads<DoubleReg>([=](int) { return wasm_f64x2_splat(x); });
}
ONESTEP_INLINE DoubleReg load_reg(const double* p) {
  return quads<DoubleReg>([=](int i) { return wasm_v128_load(p + 2 * i); });
}
ONESTEP_INLINE DoubleReg load_reg_first(const double* p, int64_t n) {
  double lanes[8] = {};
  for (int64_t i = 0; i < 8 && i < n; ++i) lanes[i] = p[i];
  return load_reg(lanes);
}
ONESTEP_INLINE void store_reg(double* p, DoubleReg x) {
  for (int i = 0; i < 4; ++i) wasm_v128_store(p + 2 * i, x.v[i]);
}
ONESTEP_INLINE void store_reg_first(double* p, DoubleReg x, int64_t n) {
  double lanes[8];
  store_reg(lanes, x);
  for (int64_t i = 0; i < 8 && i < n; ++i) p[i] = lanes[i];
}
ONESTEP_INLINE DoubleReg operator+(DoubleReg a, DoubleReg b) {
  return quads<DoubleReg>([&](int i) { return wasm_f64x2_add(a.v[i], b.v[i]); });
}
ONESTEP_INLINE void keep(DoubleReg) {}

}  // namespace
}  // namespace onestep::kernels

#ifdef ONESTEP_ISA_wasm_relaxed
#include "autograd/kernels/simd_wasm_relaxed.h"
#else
#include "autograd/kernels/simd_wasm_exact.h"
#endif
