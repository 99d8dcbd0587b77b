#pragma once
// simd.h in plain C++: arrays of 16, left to the compiler's vectoriser. A fused multiply-add is exact on any machine, and
// slow where the C library has to compute it.
#include <cstdint>

namespace onestep::kernels {
namespace {

struct Vec {
  float v[16];
};
struct IVec {
  int32_t v[16];
};
struct Mask {
  bool v[16];
};

template <class R, class F>
ONESTEP_INLINE R lanes(F f) {
  R r;
  for (int i = 0; i < 16; ++i) r.v[i] = f(i);
  return r;
}

ONESTEP_INLINE Vec splat(float x) {
  return lanes<Vec>([=](int) { return x; });
}
ONESTEP_INLINE IVec splat(int32_t x) {
  return lanes<IVec>([=](int) { return x; });
}
ONESTEP_INLINE Mask first_lanes(int64_t n) {
  return lanes<Mask>([=](int i) { return i < n; });
}

ONESTEP_INLINE Vec load(const float* p) {
  return lanes<Vec>([=](int i) { return p[i]; });
}
ONESTEP_INLINE void store(float* p, Vec x) {
  for (int i = 0; i < 16; ++i) p[i] = x.v[i];
}
/// The first n of 16 lanes; the others are 0 and their memory is not touched.
ONESTEP_INLINE Vec load_first(const float* p, int64_t n) {
  return lanes<Vec>([=](int i) { return i < n ? p[i] : 0.0f; });
}
ONESTEP_INLINE void store_first(float* p, Vec x, int64_t n) {
  for (int i = 0; i < 16 && i < n; ++i) p[i] = x.v[i];
}

ONESTEP_INLINE Vec operator+(Vec a, Vec b) {
  return lanes<Vec>([&](int i) { return a.v[i] + b.v[i]; });
}
ONESTEP_INLINE Vec operator-(Vec a, Vec b) {
  return lanes<Vec>([&](int i) { return a.v[i] - b.v[i]; });
}
ONESTEP_INLINE Vec operator*(Vec a, Vec b) {
  return lanes<Vec>([&](int i) { return a.v[i] * b.v[i]; });
}
ONESTEP_INLINE Vec operator/(Vec a, Vec b) {
  return lanes<Vec>([&](int i) { return a.v[i] / b.v[i]; });
}
ONESTEP_INLINE Vec sqrt(Vec x) {
  return lanes<Vec>([&](int i) { return __builtin_sqrtf(x.v[i]); });
}
/// a b + c with one rounding.
ONESTEP_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return lanes<Vec>([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
/// c - a b with one rounding.
ONESTEP_INLINE Vec fnma(Vec a, Vec b, Vec c) {
  return lanes<Vec>([&](int i) { return __builtin_fmaf(-a.v[i], b.v[i], c.v[i]); });
}
/// a < b ? a : b, and a > b ? a : b.
ONESTEP_INLINE Vec min(Vec a, Vec b) {
  return lanes<Vec>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
ONESTEP_INLINE Vec max(Vec a, Vec b) {
  return lanes<Vec>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}

ONESTEP_INLINE Mask operator<(Vec a, Vec b) {
  return lanes<Mask>([&](int i) { return a.v[i] < b.v[i]; });
}
ONESTEP_INLINE Mask operator>(Vec a, Vec b) {
  return lanes<Mask>([&](int i) { return a.v[i] > b.v[i]; });
}
ONESTEP_INLINE Mask operator==(Vec a, Vec b) {
  return lanes<Mask>([&](int i) { return a.v[i] == b.v[i]; });
}
ONESTEP_INLINE Mask unordered(Vec a, Vec b) {
  return lanes<Mask>([&](int i) { return a.v[i] != a.v[i] || b.v[i] != b.v[i]; });
}
ONESTEP_INLINE bool all(Mask m) {
  bool every = true;
  for (const auto lane : m.v) every &= lane;
  return every;
}
ONESTEP_INLINE bool any(Mask m) {
  bool found = false;
  for (const auto lane : m.v) found |= lane;
  return found;
}
/// m ? a : b
ONESTEP_INLINE Vec select(Mask m, Vec a, Vec b) {
  return lanes<Vec>([&](int i) { return m.v[i] ? a.v[i] : b.v[i]; });
}
ONESTEP_INLINE IVec select(Mask m, IVec a, IVec b) {
  return lanes<IVec>([&](int i) { return m.v[i] ? a.v[i] : b.v[i]; });
}

ONESTEP_INLINE IVec bits(Vec x) { return __builtin_bit_cast(IVec, x); }
ONESTEP_INLINE Vec as_float(IVec x) { return __builtin_bit_cast(Vec, x); }
ONESTEP_INLINE Vec to_float(IVec x) {
  return lanes<Vec>([&](int i) { return static_cast<float>(x.v[i]); });
}

/// Integers wrap, as in the registers.
ONESTEP_INLINE uint32_t wrap(int32_t x) { return static_cast<uint32_t>(x); }
template <class F>
ONESTEP_INLINE IVec int_lanes(F f) {
  return lanes<IVec>([&](int i) { return static_cast<int32_t>(f(i)); });
}
ONESTEP_INLINE IVec operator+(IVec a, IVec b) {
  return int_lanes([&](int i) { return wrap(a.v[i]) + wrap(b.v[i]); });
}
ONESTEP_INLINE IVec operator-(IVec a, IVec b) {
  return int_lanes([&](int i) { return wrap(a.v[i]) - wrap(b.v[i]); });
}
ONESTEP_INLINE IVec operator&(IVec a, IVec b) {
  return int_lanes([&](int i) { return a.v[i] & b.v[i]; });
}
ONESTEP_INLINE IVec operator|(IVec a, IVec b) {
  return int_lanes([&](int i) { return a.v[i] | b.v[i]; });
}
ONESTEP_INLINE IVec operator^(IVec a, IVec b) {
  return int_lanes([&](int i) { return a.v[i] ^ b.v[i]; });
}
ONESTEP_INLINE Mask operator==(IVec a, IVec b) {
  return lanes<Mask>([&](int i) { return a.v[i] == b.v[i]; });
}
template <int N>
ONESTEP_INLINE IVec shift_left(IVec x) {
  return int_lanes([&](int i) { return wrap(x.v[i]) << N; });
}
/// Keeps the sign.
template <int N>
ONESTEP_INLINE IVec shift_right(IVec x) {
  return int_lanes([&](int i) { return x.v[i] >> N; });
}

/// Lane i meets i + 8, then i + 4, i + 2 and i + 1.
template <class F>
ONESTEP_INLINE float fold(Vec x, F f) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) x.v[i] = f(x.v[i], x.v[i + half]);
  }
  return x.v[0];
}
/// The sum of the 16 lanes.
ONESTEP_INLINE float sum(Vec x) {
  return fold(x, [](float a, float b) { return a + b; });
}
/// The largest of the 16 lanes, none of them NaN.
ONESTEP_INLINE float max(Vec x) {
  return fold(x, [](float a, float b) { return a > b ? a : b; });
}

/// to[c * to_step + r] = rows[r][c] for r < ROWS, c < 8.
template <int ROWS>
ONESTEP_INLINE void transpose(const float* const (&rows)[ROWS], float* to, int64_t to_step) {
  for (int r = 0; r < ROWS; ++r) {
    for (int c = 0; c < 8; ++c) to[c * to_step + r] = rows[r][c];
  }
}

}  // namespace
}  // namespace onestep::kernels
