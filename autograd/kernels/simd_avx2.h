#pragma once
// simd.h on AVX2 with FMA: two registers, masks as all-ones lanes.
#include <immintrin.h>

#include <cstdint>

namespace onestep::kernels {
namespace {

struct Vec {
  __m256 lo, hi;
};
struct IVec {
  __m256i lo, hi;
};
struct Mask {
  __m256 lo, hi;
};

ONESTEP_INLINE Vec splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
ONESTEP_INLINE IVec splat(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
ONESTEP_INLINE Mask first_lanes(int64_t n) {
  const __m256i count = _mm256_set1_epi32(static_cast<int32_t>(n));
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(count, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))),
          _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)))};
}

ONESTEP_INLINE Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
ONESTEP_INLINE void store(float* p, Vec x) {
  _mm256_storeu_ps(p, x.lo);
  _mm256_storeu_ps(p + 8, x.hi);
}
/// The first n of 16 lanes; the others are 0 and their memory is not touched.
ONESTEP_INLINE Vec load_first(const float* p, int64_t n) {
  const Mask m = first_lanes(n);
  return {_mm256_maskload_ps(p, _mm256_castps_si256(m.lo)), _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.hi))};
}
/// The first n < 8 of 8 lanes, in pieces of 4, 2 and 1: masked stores are slow on AMD.
ONESTEP_INLINE void store_first(float* p, __m256 x, int64_t n) {
  __m128 four = _mm256_castps256_ps128(x);
  if (n & 4) {
    _mm_storeu_ps(p, four);
    four = _mm256_extractf128_ps(x, 1);
    p += 4;
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), four);
    four = _mm_movehl_ps(four, four);
    p += 2;
  }
  if (n & 1) _mm_store_ss(p, four);
}
ONESTEP_INLINE void store_first(float* p, Vec x, int64_t n) {
  if (n < 8) return store_first(p, x.lo, n);
  _mm256_storeu_ps(p, x.lo);
  store_first(p + 8, x.hi, n & 7);
}

ONESTEP_INLINE Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
ONESTEP_INLINE Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
ONESTEP_INLINE Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
ONESTEP_INLINE Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
ONESTEP_INLINE Vec sqrt(Vec x) { return {_mm256_sqrt_ps(x.lo), _mm256_sqrt_ps(x.hi)}; }
/// a b + c with one rounding.
ONESTEP_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)}; }
/// c - a b with one rounding.
ONESTEP_INLINE Vec fnma(Vec a, Vec b, Vec c) {
  return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}
/// a b - c with one rounding.
ONESTEP_INLINE Vec fms(Vec a, Vec b, Vec c) { return {_mm256_fmsub_ps(a.lo, b.lo, c.lo), _mm256_fmsub_ps(a.hi, b.hi, c.hi)}; }
/// a < b ? a : b, and a > b ? a : b.
ONESTEP_INLINE Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
ONESTEP_INLINE Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }

template <int PREDICATE>
ONESTEP_INLINE Mask compare(Vec a, Vec b) {
  return {_mm256_cmp_ps(a.lo, b.lo, PREDICATE), _mm256_cmp_ps(a.hi, b.hi, PREDICATE)};
}
ONESTEP_INLINE Mask operator<(Vec a, Vec b) { return compare<_CMP_LT_OQ>(a, b); }
ONESTEP_INLINE Mask operator>(Vec a, Vec b) { return compare<_CMP_GT_OQ>(a, b); }
ONESTEP_INLINE Mask operator==(Vec a, Vec b) { return compare<_CMP_EQ_OQ>(a, b); }
ONESTEP_INLINE Mask unordered(Vec a, Vec b) { return compare<_CMP_UNORD_Q>(a, b); }
ONESTEP_INLINE bool all(Mask m) { return _mm256_movemask_ps(_mm256_and_ps(m.lo, m.hi)) == 0xff; }
ONESTEP_INLINE bool any(Mask m) { return _mm256_movemask_ps(_mm256_or_ps(m.lo, m.hi)) != 0; }
/// m ? a : b
ONESTEP_INLINE Vec select(Mask m, Vec a, Vec b) {
  return {_mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi)};
}

/// table[the last four bits of each lane]
ONESTEP_INLINE Vec lookup(const float (&table)[16], IVec place) {
  __m256 first = _mm256_loadu_ps(table), second = _mm256_loadu_ps(table + 8);
  asm("" : "+x"(first), "+x"(second));  // in registers: from memory VPERMPS takes twice as long on Zen 3
  const auto half = [=](__m256i i) {
    const __m256 upper = _mm256_castsi256_ps(_mm256_slli_epi32(i, 28));  // its sign says which half of the table
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(first, i), _mm256_permutevar8x32_ps(second, i), upper);
  };
  return {half(place.lo), half(place.hi)};
}

ONESTEP_INLINE IVec bits(Vec x) { return {_mm256_castps_si256(x.lo), _mm256_castps_si256(x.hi)}; }
ONESTEP_INLINE Vec as_float(IVec x) { return {_mm256_castsi256_ps(x.lo), _mm256_castsi256_ps(x.hi)}; }
ONESTEP_INLINE Vec to_float(IVec x) { return {_mm256_cvtepi32_ps(x.lo), _mm256_cvtepi32_ps(x.hi)}; }
ONESTEP_INLINE IVec select(Mask m, IVec a, IVec b) { return bits(select(m, as_float(a), as_float(b))); }
ONESTEP_INLINE IVec operator+(IVec a, IVec b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
ONESTEP_INLINE IVec operator-(IVec a, IVec b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
ONESTEP_INLINE IVec operator&(IVec a, IVec b) { return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)}; }
ONESTEP_INLINE IVec operator|(IVec a, IVec b) { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
ONESTEP_INLINE IVec operator^(IVec a, IVec b) { return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)}; }
ONESTEP_INLINE Mask operator==(IVec a, IVec b) {
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.lo, b.lo)), _mm256_castsi256_ps(_mm256_cmpeq_epi32(a.hi, b.hi))};
}
template <int N>
ONESTEP_INLINE IVec shift_left(IVec x) {
  return {_mm256_slli_epi32(x.lo, N), _mm256_slli_epi32(x.hi, N)};
}
/// Keeps the sign.
template <int N>
ONESTEP_INLINE IVec shift_right(IVec x) {
  return {_mm256_srai_epi32(x.lo, N), _mm256_srai_epi32(x.hi, N)};
}

/// See simd.h.
struct FloatReg {
  __m256 v;
};
ONESTEP_INLINE FloatReg splat_reg(float x) { return {_mm256_set1_ps(x)}; }
ONESTEP_INLINE FloatReg load_reg(const float* p) { return {_mm256_loadu_ps(p)}; }
ONESTEP_INLINE FloatReg load_reg_first(const float* p, int64_t n) {
  return {_mm256_maskload_ps(p, _mm256_castps_si256(first_lanes(n).lo))};
}
ONESTEP_INLINE void store_reg(float* p, FloatReg x) { _mm256_storeu_ps(p, x.v); }
ONESTEP_INLINE void store_reg_first(float* p, FloatReg x, int64_t n) { store_first(p, x.v, n); }
ONESTEP_INLINE FloatReg operator+(FloatReg a, FloatReg b) { return {_mm256_add_ps(a.v, b.v)}; }
ONESTEP_INLINE FloatReg fma(FloatReg a, FloatReg b, FloatReg c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
/// Has x in a register up to here. No instruction.
ONESTEP_INLINE void keep(FloatReg x) { asm("" : : "x"(x.v)); }
/// Has x computed before what comes after. No instruction.
ONESTEP_INLINE void finish(FloatReg& x) { asm volatile("" : "+x"(x.v)); }

/// Eight rows `apart` elements apart, by three pointers: there are no registers for eight.
struct EightRows {
  const float *first, *fourth, *seventh;
  int64_t apart;

  ONESTEP_INLINE EightRows(const float* rows, int64_t distance)
      : first(rows), fourth(rows + 3 * distance), seventh(rows + 6 * distance), apart(distance) {}
  ONESTEP_INLINE const float* row(int i) const {
    return i == 6 ? seventh : i == 3 || i > 4 ? fourth + (i - 3) * apart : first + i * apart;
  }
  ONESTEP_INLINE void advance(int64_t columns) {
    first += columns;
    fourth += columns;
    seventh += columns;
  }
};

/// f(p, column p of the rows), ..., f(p + 3, column p + 3).
template <class F>
ONESTEP_INLINE void for_four_columns(const EightRows& rows, int p, const F& f) {
  __m256 t[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)  // rows i and i + 4 in the two halves
    t[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows.row(i) + p)), _mm_loadu_ps(rows.row(i + 4) + p), 1);
  const __m256 first[2] = {_mm256_unpacklo_ps(t[0], t[1]), _mm256_unpacklo_ps(t[2], t[3])},
               last[2] = {_mm256_unpackhi_ps(t[0], t[1]), _mm256_unpackhi_ps(t[2], t[3])};
  f(p, FloatReg{_mm256_shuffle_ps(first[0], first[1], 0x44)});
  f(p + 1, FloatReg{_mm256_shuffle_ps(first[0], first[1], 0xee)});
  f(p + 2, FloatReg{_mm256_shuffle_ps(last[0], last[1], 0x44)});
  f(p + 3, FloatReg{_mm256_shuffle_ps(last[0], last[1], 0xee)});
}

struct DoubleReg {
  __m256d v;
};
ONESTEP_INLINE DoubleReg splat_reg(double x) { return {_mm256_set1_pd(x)}; }
ONESTEP_INLINE DoubleReg load_reg(const double* p) { return {_mm256_loadu_pd(p)}; }
ONESTEP_INLINE DoubleReg load_reg_first(const double* p, int64_t n) {
  const __m256i mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
  return {_mm256_maskload_pd(p, mask)};
}
ONESTEP_INLINE void store_reg(double* p, DoubleReg x) { _mm256_storeu_pd(p, x.v); }
ONESTEP_INLINE void store_reg_first(double* p, DoubleReg x, int64_t n) {
  __m128d two = _mm256_castpd256_pd128(x.v);
  if (n & 4) return store_reg(p, x);
  if (n & 2) {
    _mm_storeu_pd(p, two);
    two = _mm256_extractf128_pd(x.v, 1);
    p += 2;
  }
  if (n & 1) _mm_store_sd(p, two);
}
ONESTEP_INLINE DoubleReg operator+(DoubleReg a, DoubleReg b) { return {_mm256_add_pd(a.v, b.v)}; }
ONESTEP_INLINE DoubleReg fma(DoubleReg a, DoubleReg b, DoubleReg c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
ONESTEP_INLINE void keep(DoubleReg x) { asm("" : : "x"(x.v)); }

/// See simd.h.
ONESTEP_INLINE Vec load_bf16(const void* p) {
  const __m256i pairs = _mm256_loadu_si256(static_cast<const __m256i*>(p));
  return as_float(IVec{_mm256_slli_epi32(pairs, 16), _mm256_and_si256(pairs, _mm256_set1_epi32(INT32_MIN >> 15))});
}

/// 16 bits of each lane.
ONESTEP_INLINE __m256i narrowed_to_16(IVec q) {
  const __m256i packed = _mm256_packs_epi32(q.lo, q.hi);  // numbers 0-3, 8-11, 4-7 and 12-15
  return _mm256_permute4x64_epi64(packed, 0xd8);
}

/// See simd.h.
#ifdef __AVXVNNI__
using Quantized = int8_t;
using Bytes = IVec;
ONESTEP_INLINE Bytes load_bytes(const void* p) {
  const auto* const from = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
}
ONESTEP_INLINE IVec add_dots(IVec sum, Bytes w, const Quantized* x) {
  const __m256i numbers = _mm256_set1_epi32(four_bytes(x));
  return {_mm256_dpbusd_avx_epi32(sum.lo, w.lo, numbers), _mm256_dpbusd_avx_epi32(sum.hi, w.hi, numbers)};
}
ONESTEP_INLINE __m128i narrowed(IVec q) {
  const __m256i pairs = narrowed_to_16(q);
  return _mm_packs_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}
#else
using Quantized = int16_t;
struct Bytes {
  IVec even, odd;  // as 16-bit numbers
};
ONESTEP_INLINE Bytes load_bytes(const void* p) {
  const auto* const from = static_cast<const __m256i*>(p);
  const IVec bytes = {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
  return {bytes & splat(0x00ff00ff), {_mm256_srli_epi16(bytes.lo, 8), _mm256_srli_epi16(bytes.hi, 8)}};
}
/// Sums of integers are not put into another order, for which there are no registers. No instruction.
ONESTEP_INLINE void keep(IVec& sum) { asm("" : "+x"(sum.lo), "+x"(sum.hi)); }
ONESTEP_INLINE IVec add_dots(IVec sum, Bytes w, const Quantized* x) {
  const __m256i first = _mm256_set1_epi32(four_bytes(x)), second = _mm256_set1_epi32(four_bytes(x + 2));
  sum = sum + IVec{_mm256_madd_epi16(w.even.lo, first), _mm256_madd_epi16(w.even.hi, first)};
  keep(sum);
  sum = sum + IVec{_mm256_madd_epi16(w.odd.lo, second), _mm256_madd_epi16(w.odd.hi, second)};
  keep(sum);
  return sum;
}
ONESTEP_INLINE void store_quantized(Quantized* to, IVec q) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrowed_to_16(q));
}
#endif

ONESTEP_INLINE __m256 lower_half(Vec x) { return x.lo; }
ONESTEP_INLINE __m256 upper_half(Vec x) { return x.hi; }

}  // namespace
}  // namespace onestep::kernels

#include "autograd/kernels/simd_x86.h"
