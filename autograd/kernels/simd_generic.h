#pragma once
// simd.h in the vector extensions of GCC and Clang, which are compiled for what every CPU of the architecture has. A fused
// multiply-add is exact on any machine, and slow where the C library has to compute it.
#include <cstdint>
#include <cstring>

namespace onestep::kernels {
namespace {

template <class T>
struct LanesOf {
  typedef T type __attribute__((vector_size(64)));
};
template <class T>
using Lanes = typename LanesOf<T>::type;

struct Vec {
  Lanes<float> v;
};
struct IVec {
  Lanes<int32_t> v;
};
struct Mask {
  Lanes<int32_t> v;  ///< -1 or 0
};

template <class R, class F>
ONESTEP_INLINE R lanes(F f) {
  R r;
  for (int i = 0; i < 16; ++i) r.v[i] = f(i);
  return r;
}

ONESTEP_INLINE Vec splat(float x) { return {x - Lanes<float>{}}; }
ONESTEP_INLINE IVec splat(int32_t x) { return {x - Lanes<int32_t>{}}; }
ONESTEP_INLINE Mask first_lanes(int64_t n) {
  const Lanes<int32_t> place = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const int32_t count = n < 16 ? static_cast<int32_t>(n) : 16;
  return {place < count};
}

ONESTEP_INLINE Vec load(const float* p) {
  Vec x;
  std::memcpy(&x.v, p, sizeof x.v);
  return x;
}
ONESTEP_INLINE void store(float* p, Vec x) { std::memcpy(p, &x.v, sizeof x.v); }
/// The first n of 16 lanes; the others are 0 and their memory is not touched.
ONESTEP_INLINE Vec load_first(const float* p, int64_t n) {
  Vec x{};
  for (int i = 0; i < 16 && i < n; ++i) x.v[i] = p[i];
  return x;
}
ONESTEP_INLINE void store_first(float* p, Vec x, int64_t n) {
  for (int i = 0; i < 16 && i < n; ++i) p[i] = x.v[i];
}

ONESTEP_INLINE Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
ONESTEP_INLINE Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
ONESTEP_INLINE Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
ONESTEP_INLINE Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
ONESTEP_INLINE Vec sqrt(Vec x) {
  return lanes<Vec>([&](int i) { return __builtin_sqrtf(x.v[i]); });
}
// Where there is no instruction for it, a fused multiply-add of a vector is as many calls of the C library: in one place for
// all, which a product notices less than the compiler does.
#ifdef __FP_FAST_FMAF
#define ONESTEP_LANEWISE ONESTEP_INLINE
#else
#define ONESTEP_LANEWISE [[gnu::noinline]] inline
#endif
/// c = a b + c with one rounding.
ONESTEP_LANEWISE void add_product(const Lanes<float>& a, const Lanes<float>& b, Lanes<float>& c) {
  for (int i = 0; i < 16; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
}
ONESTEP_LANEWISE void add_product(const Lanes<double>& a, const Lanes<double>& b, Lanes<double>& c) {
  for (int i = 0; i < 8; ++i) c[i] = __builtin_fma(a[i], b[i], c[i]);
}
#undef ONESTEP_LANEWISE

/// a b + c with one rounding.
ONESTEP_INLINE Vec fma(Vec a, Vec b, Vec c) {
  add_product(a.v, b.v, c.v);
  return c;
}
/// c - a b with one rounding.
ONESTEP_INLINE Vec fnma(Vec a, Vec b, Vec c) { return fma({-a.v}, b, c); }
/// a < b ? a : b, and a > b ? a : b.
ONESTEP_INLINE Vec min(Vec a, Vec b) { return {a.v < b.v ? a.v : b.v}; }
ONESTEP_INLINE Vec max(Vec a, Vec b) { return {a.v > b.v ? a.v : b.v}; }

ONESTEP_INLINE Mask operator<(Vec a, Vec b) { return {a.v < b.v}; }
ONESTEP_INLINE Mask operator>(Vec a, Vec b) { return {a.v > b.v}; }
ONESTEP_INLINE Mask operator==(Vec a, Vec b) { return {a.v == b.v}; }
ONESTEP_INLINE Mask unordered(Vec a, Vec b) { return {(a.v != a.v) | (b.v != b.v)}; }
ONESTEP_INLINE bool all(Mask m) {
  int32_t every = -1;
  for (int i = 0; i < 16; ++i) every &= m.v[i];
  return every != 0;
}
ONESTEP_INLINE bool any(Mask m) {
  int32_t found = 0;
  for (int i = 0; i < 16; ++i) found |= m.v[i];
  return found != 0;
}
/// m ? a : b
ONESTEP_INLINE Vec select(Mask m, Vec a, Vec b) { return {m.v ? a.v : b.v}; }
ONESTEP_INLINE IVec select(Mask m, IVec a, IVec b) { return {m.v ? a.v : b.v}; }

/// table[the last four bits of each lane]
ONESTEP_INLINE Vec lookup(const float (&table)[16], IVec place) {
  return lanes<Vec>([&](int i) { return table[place.v[i] & 15]; });
}

ONESTEP_INLINE IVec bits(Vec x) { return __builtin_bit_cast(IVec, x); }
ONESTEP_INLINE Vec as_float(IVec x) { return __builtin_bit_cast(Vec, x); }
ONESTEP_INLINE Vec to_float(IVec x) { return {__builtin_convertvector(x.v, Lanes<float>)}; }

/// Integers wrap, as in the registers.
ONESTEP_INLINE Lanes<uint32_t> wrap(IVec x) { return __builtin_bit_cast(Lanes<uint32_t>, x); }
ONESTEP_INLINE IVec wrapped(Lanes<uint32_t> x) { return __builtin_bit_cast(IVec, x); }
ONESTEP_INLINE IVec operator+(IVec a, IVec b) { return wrapped(wrap(a) + wrap(b)); }
ONESTEP_INLINE IVec operator-(IVec a, IVec b) { return wrapped(wrap(a) - wrap(b)); }
ONESTEP_INLINE IVec operator&(IVec a, IVec b) { return {a.v & b.v}; }
ONESTEP_INLINE IVec operator|(IVec a, IVec b) { return {a.v | b.v}; }
ONESTEP_INLINE IVec operator^(IVec a, IVec b) { return {a.v ^ b.v}; }
ONESTEP_INLINE Mask operator==(IVec a, IVec b) { return {a.v == b.v}; }
template <int N>
ONESTEP_INLINE IVec shift_left(IVec x) {
  return wrapped(wrap(x) << N);
}
/// Keeps the sign.
template <int N>
ONESTEP_INLINE IVec shift_right(IVec x) {
  return {x.v >> N};
}

/// See simd.h.
ONESTEP_INLINE Vec load_bf16(const void* p) {
  uint16_t numbers[16];
  std::memcpy(numbers, p, sizeof numbers);
  return lanes<Vec>(
      [&](int i) { return __builtin_bit_cast(float, static_cast<uint32_t>(numbers[2 * (i % 8) + i / 8]) << 16); });
}

/// See simd.h.
using Quantized = int16_t;
struct Bytes {
  IVec numbers[4];
};
ONESTEP_INLINE Bytes load_bytes(const void* p) {
  Lanes<uint32_t> words;
  std::memcpy(&words, p, sizeof words);
  return {wrapped(words & 255), wrapped(words >> 16 & 255), wrapped(words >> 8 & 255), wrapped(words >> 24)};
}
ONESTEP_INLINE IVec add_dots(IVec sum, Bytes w, const Quantized* x) {
  for (int p = 0; p < 4; ++p) sum.v += w.numbers[p].v * x[p];
  return sum;
}
ONESTEP_INLINE void store_quantized(Quantized* to, IVec q) {
  for (int i = 0; i < 16; ++i) to[i] = static_cast<Quantized>(q.v[i]);
}

/// See simd.h.
struct DoubleReg {
  Lanes<double> v;
};
ONESTEP_INLINE DoubleReg splat_reg(double x) { return {x - Lanes<double>{}}; }
ONESTEP_INLINE DoubleReg load_reg(const double* p) {
  DoubleReg x;
  std::memcpy(&x.v, p, sizeof x.v);
  return x;
}
ONESTEP_INLINE DoubleReg load_reg_first(const double* p, int64_t n) {
  DoubleReg x{};
  for (int i = 0; i < 8 && i < n; ++i) x.v[i] = p[i];
  return x;
}
ONESTEP_INLINE void store_reg(double* p, DoubleReg x) { std::memcpy(p, &x.v, sizeof x.v); }
ONESTEP_INLINE void store_reg_first(double* p, DoubleReg x, int64_t n) {
  for (int i = 0; i < 8 && i < n; ++i) p[i] = x.v[i];
}
ONESTEP_INLINE DoubleReg operator+(DoubleReg a, DoubleReg b) { return {a.v + b.v}; }
ONESTEP_INLINE DoubleReg fma(DoubleReg a, DoubleReg b, DoubleReg c) {
  add_product(a.v, b.v, c.v);
  return c;
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
template <class T, int ROWS>
ONESTEP_INLINE void transpose(const T* const (&rows)[ROWS], T* to, int64_t to_step) {
  for (int r = 0; r < ROWS; ++r) {
    for (int c = 0; c < 8; ++c) to[c * to_step + r] = rows[r][c];
  }
}

}  // namespace
}  // namespace onestep::kernels
