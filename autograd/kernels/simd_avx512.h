#pragma once
// simd.h on AVX-512: one register, masks in mask registers.
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12's own header (GCC bug 105593)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>

namespace onestep::kernels {
namespace {

struct Vec {
  __m512 v;
};
struct IVec {
  __m512i v;
};
struct Mask {
  __mmask16 v;
};

ONESTEP_INLINE Vec splat(float x) { return {_mm512_set1_ps(x)}; }
ONESTEP_INLINE IVec splat(int32_t x) { return {_mm512_set1_epi32(x)}; }
ONESTEP_INLINE Mask first_lanes(int64_t n) { return {static_cast<__mmask16>(n >= 16 ? 0xffffu : (1u << n) - 1u)}; }

ONESTEP_INLINE Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
ONESTEP_INLINE void store(float* p, Vec x) { _mm512_storeu_ps(p, x.v); }
/// The first n of 16 lanes; the others are 0 and their memory is not touched.
ONESTEP_INLINE Vec load_first(const float* p, int64_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n).v, p)}; }
ONESTEP_INLINE void store_first(float* p, Vec x, int64_t n) { _mm512_mask_storeu_ps(p, first_lanes(n).v, x.v); }

ONESTEP_INLINE Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
ONESTEP_INLINE Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
ONESTEP_INLINE Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
ONESTEP_INLINE Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
ONESTEP_INLINE Vec sqrt(Vec x) { return {_mm512_sqrt_ps(x.v)}; }
/// a b + c with one rounding.
ONESTEP_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
/// c - a b with one rounding.
ONESTEP_INLINE Vec fnma(Vec a, Vec b, Vec c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
/// a b - c with one rounding.
ONESTEP_INLINE Vec fms(Vec a, Vec b, Vec c) { return {_mm512_fmsub_ps(a.v, b.v, c.v)}; }
/// a < b ? a : b, and a > b ? a : b.
ONESTEP_INLINE Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
ONESTEP_INLINE Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }

ONESTEP_INLINE Mask operator<(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
ONESTEP_INLINE Mask operator>(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
ONESTEP_INLINE Mask operator==(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
ONESTEP_INLINE Mask unordered(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_UNORD_Q)}; }
ONESTEP_INLINE bool all(Mask m) { return m.v == 0xffff; }
ONESTEP_INLINE bool any(Mask m) { return m.v != 0; }
/// m ? a : b
ONESTEP_INLINE Vec select(Mask m, Vec a, Vec b) { return {_mm512_mask_blend_ps(m.v, b.v, a.v)}; }
ONESTEP_INLINE IVec select(Mask m, IVec a, IVec b) { return {_mm512_mask_blend_epi32(m.v, b.v, a.v)}; }

/// table[the last four bits of each lane]
ONESTEP_INLINE Vec lookup(const float (&table)[16], IVec place) {
  return {_mm512_permutexvar_ps(place.v, _mm512_loadu_ps(table))};
}

ONESTEP_INLINE IVec bits(Vec x) { return {_mm512_castps_si512(x.v)}; }
ONESTEP_INLINE Vec as_float(IVec x) { return {_mm512_castsi512_ps(x.v)}; }
ONESTEP_INLINE Vec to_float(IVec x) { return {_mm512_cvtepi32_ps(x.v)}; }
ONESTEP_INLINE IVec operator+(IVec a, IVec b) { return {_mm512_add_epi32(a.v, b.v)}; }
ONESTEP_INLINE IVec operator-(IVec a, IVec b) { return {_mm512_sub_epi32(a.v, b.v)}; }
ONESTEP_INLINE IVec operator&(IVec a, IVec b) { return {_mm512_and_si512(a.v, b.v)}; }
ONESTEP_INLINE IVec operator|(IVec a, IVec b) { return {_mm512_or_si512(a.v, b.v)}; }
ONESTEP_INLINE IVec operator^(IVec a, IVec b) { return {_mm512_xor_si512(a.v, b.v)}; }
ONESTEP_INLINE Mask operator==(IVec a, IVec b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
template <int N>
ONESTEP_INLINE IVec shift_left(IVec x) {
  return {_mm512_slli_epi32(x.v, N)};
}
/// Keeps the sign.
template <int N>
ONESTEP_INLINE IVec shift_right(IVec x) {
  return {_mm512_srai_epi32(x.v, N)};
}

/// See simd.h.
ONESTEP_INLINE Vec load_bf16(const void* p) {
  const __m512i pairs = _mm512_broadcast_i32x8(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  // Two bytes of zeros and two of a word, of the first ones and then of the second ones: one instruction for a shift and a
  // mask.
  const __m512i first = _mm512_set4_epi32(0x0d0c8080, 0x09088080, 0x05048080, 0x01008080);
  const __m512i second = _mm512_set4_epi32(0x0f0e8080, 0x0b0a8080, 0x07068080, 0x03028080);
  const __m512i bytes = _mm512_inserti64x4(first, _mm512_castsi512_si256(second), 1);
  return as_float(IVec{_mm512_shuffle_epi8(pairs, bytes)});
}

/// See simd.h.
#ifdef __AVX512VNNI__
using Quantized = int8_t;
using Bytes = IVec;
ONESTEP_INLINE Bytes load_bytes(const void* p) { return {_mm512_loadu_si512(p)}; }
ONESTEP_INLINE IVec add_dots(IVec sum, Bytes w, const Quantized* x) {
  return {_mm512_dpbusd_epi32(sum.v, w.v, _mm512_set1_epi32(four_bytes(x)))};
}
ONESTEP_INLINE __m128i narrowed(IVec q) { return _mm512_cvtepi32_epi8(q.v); }
#else
using Quantized = int16_t;
struct Bytes {
  IVec even, odd;  // as 16-bit numbers
};
/// Sums of integers are not put into another order, for which there are no registers. No instruction.
ONESTEP_INLINE void keep(IVec& sum) {
#ifdef __AVX512F__  // or it is emulated
  asm("" : "+v"(sum.v));
#endif
}
ONESTEP_INLINE Bytes load_bytes(const void* p) {
  const IVec bytes = {_mm512_loadu_si512(p)};
  return {bytes & splat(0x00ff00ff), {_mm512_srli_epi16(bytes.v, 8)}};
}
ONESTEP_INLINE IVec add_dots(IVec sum, Bytes w, const Quantized* x) {
  sum = sum + IVec{_mm512_madd_epi16(w.even.v, _mm512_set1_epi32(four_bytes(x)))};
  keep(sum);
  sum = sum + IVec{_mm512_madd_epi16(w.odd.v, _mm512_set1_epi32(four_bytes(x + 2)))};
  keep(sum);
  return sum;
}
ONESTEP_INLINE void store_quantized(Quantized* to, IVec q) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(q.v));
}
#endif

/// See simd.h.
struct DoubleReg {
  __m512d v;
};
ONESTEP_INLINE DoubleReg splat_reg(double x) { return {_mm512_set1_pd(x)}; }
ONESTEP_INLINE DoubleReg load_reg(const double* p) { return {_mm512_loadu_pd(p)}; }
ONESTEP_INLINE DoubleReg load_reg_first(const double* p, int64_t n) {
  return {_mm512_maskz_loadu_pd(static_cast<__mmask8>(first_lanes(n).v), p)};
}
ONESTEP_INLINE void store_reg(double* p, DoubleReg x) { _mm512_storeu_pd(p, x.v); }
ONESTEP_INLINE void store_reg_first(double* p, DoubleReg x, int64_t n) {
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>(first_lanes(n).v), x.v);
}
ONESTEP_INLINE DoubleReg operator+(DoubleReg a, DoubleReg b) { return {_mm512_add_pd(a.v, b.v)}; }
ONESTEP_INLINE DoubleReg fma(DoubleReg a, DoubleReg b, DoubleReg c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }

/// Calls f(c, column c) for the 16 columns of rows[r][first], ..., rows[r][first + 15], in ascending order: lane r of column c
/// is rows[r][first + c].
template <class F>
ONESTEP_INLINE void for_each_column(const float* const (&rows)[16], int64_t first, const F& f) {
  __m512 t[16], u[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    const __m512 a = _mm512_loadu_ps(rows[i] + first), b = _mm512_loadu_ps(rows[i + 1] + first);
    t[i] = _mm512_unpacklo_ps(a, b);
    t[i + 1] = _mm512_unpackhi_ps(a, b);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {  // u[i + j]: columns j, j + 4, j + 8 and j + 12 of rows i to i + 3
    u[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  // t[j] and t[j + 8]: columns j and j + 8 of rows 0 to 7 and 8 to 15; t[j + 4] and t[j + 12]: columns j + 4 and j + 12
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    t[j] = _mm512_shuffle_f32x4(u[j], u[j + 4], 0x88);
    t[j + 4] = _mm512_shuffle_f32x4(u[j], u[j + 4], 0xdd);
    t[j + 8] = _mm512_shuffle_f32x4(u[j + 8], u[j + 12], 0x88);
    t[j + 12] = _mm512_shuffle_f32x4(u[j + 8], u[j + 12], 0xdd);
  }
#pragma GCC unroll 8
  for (int c = 0; c < 8; ++c) f(c, Vec{_mm512_shuffle_f32x4(t[c], t[c + 8], 0x88)});
#pragma GCC unroll 8
  for (int c = 0; c < 8; ++c) f(c + 8, Vec{_mm512_shuffle_f32x4(t[c], t[c + 8], 0xdd)});
}

/// to[c * to_step + r] = rows[r][c] for r, c < 16.
ONESTEP_INLINE void transpose(const float* const (&rows)[16], float* to, int64_t to_step) {
  for_each_column(rows, 0, [=](int c, Vec column) { store(to + c * to_step, column); });
}

ONESTEP_INLINE __m256 lower_half(Vec x) { return _mm512_castps512_ps256(x.v); }
ONESTEP_INLINE __m256 upper_half(Vec x) { return _mm512_extractf32x8_ps(x.v, 1); }

}  // namespace
}  // namespace onestep::kernels

#include "autograd/kernels/simd_x86.h"
