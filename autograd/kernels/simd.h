#pragma once
// Vec: 16 floats, whatever the machine calls them: one AVX-512 register, two of AVX2, four of WebAssembly, or an array. Every
// operation is IEEE-exact, so kernels written with it give the same bits for each. Included only by *.isa.cpp; everything is in
// anonymous namespaces and nothing of the standard library is used, because the linker merges equal inline functions of files
// that were compiled for different instruction sets.
#include <cstdint>

#define ONESTEP_INLINE inline __attribute__((always_inline))
/// For kernels: everything they call is put in place, lambdas included; a vector passed in memory costs more than its sum.
#define ONESTEP_FLATTEN __attribute__((flatten))

namespace onestep::kernels {
namespace {

ONESTEP_INLINE int32_t four_bytes(const void* p) {
  int32_t bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  return bytes;
}

}  // namespace
}  // namespace onestep::kernels

#if defined(ONESTEP_ISA_avx512)
#define ONESTEP_ISA_NAME avx512
#include "autograd/kernels/simd_avx512.h"
#elif defined(ONESTEP_ISA_avx2)
#define ONESTEP_ISA_NAME avx2
#include "autograd/kernels/simd_avx2.h"
#elif defined(ONESTEP_ISA_wasm)
#define ONESTEP_ISA_NAME wasm
#include "autograd/kernels/simd_wasm.h"
#elif defined(ONESTEP_ISA_wasm_relaxed)
#define ONESTEP_ISA_NAME wasm_relaxed
#include "autograd/kernels/simd_wasm.h"
#else
#define ONESTEP_ISA_NAME generic
#include "autograd/kernels/simd_generic.h"
#endif

namespace onestep::kernels {
namespace {

inline constexpr int64_t kLanes = 16;
inline constexpr float kInf = __builtin_inff();

// Reg<T>: one register of floats or doubles, whatever its size. For matrix products: they want as many independent accumulators
// as there are registers, and their bits do not depend on how many columns go together.
#if defined(ONESTEP_ISA_avx512) || defined(ONESTEP_ISA_generic)
using FloatReg = Vec;
ONESTEP_INLINE FloatReg splat_reg(float x) { return splat(x); }
ONESTEP_INLINE FloatReg load_reg(const float* p) { return load(p); }
ONESTEP_INLINE FloatReg load_reg_first(const float* p, int64_t n) { return load_first(p, n); }
ONESTEP_INLINE void store_reg(float* p, FloatReg x) { store(p, x); }
ONESTEP_INLINE void store_reg_first(float* p, FloatReg x, int64_t n) { store_first(p, x, n); }
ONESTEP_INLINE void keep(FloatReg) {}
ONESTEP_INLINE void keep(DoubleReg) {}
#endif

template <class T>
struct RegOf {
  using Type = FloatReg;
};
template <>
struct RegOf<double> {
  using Type = DoubleReg;
};
template <class T>
using Reg = typename RegOf<T>::Type;
template <class T>
inline constexpr int64_t kRegLanes = sizeof(Reg<T>) / sizeof(T);
#ifdef ONESTEP_ISA_wasm
template <>
inline constexpr int64_t kRegLanes<float> = sizeof(FloatReg) / sizeof(double);
#endif

#ifndef ONESTEP_ISA_wasm
/// What an fma leaves to be looked at after many of them: nothing, where the machine has one (simd_wasm_exact.h).
struct Doubt {
  static constexpr bool kPossible = false;
};
ONESTEP_INLINE bool is_doubtful(const Doubt&) { return false; }
ONESTEP_INLINE FloatReg fma(FloatReg a, FloatReg b, FloatReg c, Doubt&) { return fma(a, b, c); }
ONESTEP_INLINE FloatReg careful_fma(FloatReg a, FloatReg b, FloatReg c) { return fma(a, b, c); }
#endif
ONESTEP_INLINE DoubleReg fma(DoubleReg a, DoubleReg b, DoubleReg c, Doubt&) { return fma(a, b, c); }
ONESTEP_INLINE DoubleReg careful_fma(DoubleReg a, DoubleReg b, DoubleReg c) { return fma(a, b, c); }

ONESTEP_INLINE Vec abs(Vec x) { return as_float(bits(x) & splat(0x7fffffff)); }
/// |magnitude| with the sign of `sign`, for magnitude >= 0.
ONESTEP_INLINE Vec with_sign_of(Vec magnitude, Vec sign) { return as_float(bits(magnitude) | (bits(sign) & splat(INT32_MIN))); }
ONESTEP_INLINE Vec operator-(Vec x) { return as_float(bits(x) ^ splat(INT32_MIN)); }
#if !defined(ONESTEP_ISA_avx512) && !defined(ONESTEP_ISA_avx2)
/// a b - c with one rounding.
ONESTEP_INLINE Vec fms(Vec a, Vec b, Vec c) { return fma(a, b, -c); }
#endif
ONESTEP_INLINE Mask is_nan(Vec x) { return unordered(x, x); }

// 16 bfloat16 as floats, for weights: load_bf16(p). They are stored in the order 0, 8, 1, 9, ..., so that the two of each word
// are made floats by a shift and by a mask.

// Sums of products of bytes, for weights that are integers. Bytes: four integers from 0 to 255 for each of 16 lanes, stored in
// the order 0, 2, 1, 3, so that even and odd bytes are neighbours as 16-bit numbers; Quantized: an integer from -127 to 127.
//   add_dots(sum, w, x): lane i of sum + sum over p < 4 of number p of lane i of w times x[p]; exact
//   store_quantized(to, q): 16 integers for add_dots

/// NaN when either is NaN, unlike min and max (which give b then).
ONESTEP_INLINE Vec max_nan(Vec a, Vec b) { return select(is_nan(a), a, max(a, b)); }
ONESTEP_INLINE Vec min_nan(Vec a, Vec b) { return select(is_nan(a), a, min(a, b)); }
/// NaN stays NaN.
ONESTEP_INLINE Vec clamp(Vec x, float low, float high) { return min(splat(high), max(splat(low), x)); }

/// 2^n for -126 <= n <= 127.
ONESTEP_INLINE Vec exp2_int(IVec n) { return as_float(shift_left<23>(n) + splat(127 << 23)); }
/// x 2^n for -252 <= n <= 254: two exact steps unless the result is subnormal, then one rounding.
ONESTEP_INLINE Vec scale(Vec x, IVec n) {
  const IVec half = shift_right<1>(n);
  return x * exp2_int(half) * exp2_int(n - half);
}

/// The nearest integer (ties to even) of |x| < 2^22, as a float and as an int.
struct Rounded {
  Vec value;
  IVec integer;
  IVec modulo;  // the integer and a multiple of 2^22
};
ONESTEP_INLINE Rounded round_nearest(Vec x) {
  const Vec magic = splat(12582912.0f);  // 1.5 * 2^23: the sum's last mantissa bit is worth 1
  const Vec shifted = x + magic;
  return {shifted - magic, bits(shifted) - bits(magic), bits(shifted)};
}

/// The first `count` of 16 lanes, where count is 16 for all but the last vector of a row: the branch is well predicted.
ONESTEP_INLINE Vec load_upto(const float* p, int64_t count) { return count >= kLanes ? load(p) : load_first(p, count); }
ONESTEP_INLINE void store_upto(float* p, Vec x, int64_t count) { count >= kLanes ? store(p, x) : store_first(p, x, count); }

/// load_upto, with AVX-512 by two loads: on Zen 4 the sum of two arrays in the L3 cache takes 0.83 of the time then.
ONESTEP_INLINE Vec load_halves_upto(const float* p, int64_t count) {
#if defined(ONESTEP_ISA_avx512)
  if (count >= kLanes) return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(p + 8), 1)};
#endif
  return load_upto(p, count);
}

/// y[i] = f(x[i]) for i < n. One call of f, so that the compiler can put it in place and keep its vectors in registers.
template <class F>
ONESTEP_INLINE void map(const float* x, float* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; i += kLanes) store_upto(y + i, f(load_upto(x + i, n - i)), n - i);
}

/// y[i] = f(a[i], b[i]) for i < n.
template <class F>
ONESTEP_INLINE void map2(const float* a, const float* b, float* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; i += kLanes)
    store_upto(y + i, f(load_halves_upto(a + i, n - i), load_halves_upto(b + i, n - i)), n - i);
}

}  // namespace
}  // namespace onestep::kernels
