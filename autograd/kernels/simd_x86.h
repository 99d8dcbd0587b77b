#pragma once
// What simd.h needs beyond single instructions, on 256-bit registers for AVX2 and AVX-512 alike. In the reductions lane i
// meets i + 8, then i + 4, i + 2 and i + 1, as in the generic version.
#include <immintrin.h>

namespace onestep::kernels {
namespace {

/// The sum of the 16 lanes.
ONESTEP_INLINE float sum(Vec x) {
  const __m256 eight = _mm256_add_ps(lower_half(x), upper_half(x));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// The largest of the 16 lanes, none of them NaN.
ONESTEP_INLINE float max(Vec x) {
  const __m256 eight = _mm256_max_ps(lower_half(x), upper_half(x));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// to[c * to_step + r] = rows[r][c] for r, c < 8.
ONESTEP_INLINE void transpose(const float* const (&rows)[8], float* to, int64_t to_step) {
  __m256 t[8], u[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // rows i and i + 4 in the two halves, columns 0-3 and 4-7
    const float *a = rows[i], *b = rows[i + 4];
    t[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(b), 1);
    t[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a + 4)), _mm_loadu_ps(b + 4), 1);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {  // four 4x4 transposes, two at a time
    u[i] = _mm256_unpacklo_ps(t[i], t[i + 1]);
    u[i + 1] = _mm256_unpackhi_ps(t[i], t[i + 1]);
    u[i + 2] = _mm256_unpacklo_ps(t[i + 2], t[i + 3]);
    u[i + 3] = _mm256_unpackhi_ps(t[i + 2], t[i + 3]);
    _mm256_storeu_ps(to + i * to_step, _mm256_shuffle_ps(u[i], u[i + 2], 0x44));
    _mm256_storeu_ps(to + (i + 1) * to_step, _mm256_shuffle_ps(u[i], u[i + 2], 0xee));
    _mm256_storeu_ps(to + (i + 2) * to_step, _mm256_shuffle_ps(u[i + 1], u[i + 3], 0x44));
    _mm256_storeu_ps(to + (i + 3) * to_step, _mm256_shuffle_ps(u[i + 1], u[i + 3], 0xee));
  }
}

/// to[c * to_step + r] = rows[r][c] for r < 4, c < 8.
ONESTEP_INLINE void transpose(const float* const (&rows)[4], float* to, int64_t to_step) {
  __m256 t[4];  // columns 0-3 and 4-7 in the two halves
#pragma GCC unroll 2
  for (int64_t i = 0; i < 2; ++i) {
    const __m256 a = _mm256_loadu_ps(rows[2 * i]), b = _mm256_loadu_ps(rows[2 * i + 1]);
    t[2 * i] = _mm256_unpacklo_ps(a, b);
    t[2 * i + 1] = _mm256_unpackhi_ps(a, b);
  }
  const __m256 columns[4] = {_mm256_shuffle_ps(t[0], t[2], 0x44), _mm256_shuffle_ps(t[0], t[2], 0xee),
                             _mm256_shuffle_ps(t[1], t[3], 0x44), _mm256_shuffle_ps(t[1], t[3], 0xee)};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm_storeu_ps(to + i * to_step, _mm256_castps256_ps128(columns[i]));
    _mm_storeu_ps(to + (i + 4) * to_step, _mm256_extractf128_ps(columns[i], 1));
  }
}

/// to[c * to_step + r] = rows[r][c] for r < ROWS, c < 8, in blocks of 4 x 4.
template <int ROWS>
ONESTEP_INLINE void transpose(const double* const (&rows)[ROWS], double* to, int64_t to_step) {
#pragma GCC unroll 2
  for (int r = 0; r < ROWS; r += 4) {
#pragma GCC unroll 2
    for (int c = 0; c < 8; c += 4) {
      const __m256d a = _mm256_loadu_pd(rows[r] + c), b = _mm256_loadu_pd(rows[r + 1] + c),
                    d = _mm256_loadu_pd(rows[r + 2] + c), e = _mm256_loadu_pd(rows[r + 3] + c);
      const __m256d ab_even = _mm256_unpacklo_pd(a, b), ab_odd = _mm256_unpackhi_pd(a, b),  // columns 0 and 2, 1 and 3
          de_even = _mm256_unpacklo_pd(d, e), de_odd = _mm256_unpackhi_pd(d, e);
      double* const at = to + c * to_step + r;
      _mm256_storeu_pd(at, _mm256_permute2f128_pd(ab_even, de_even, 0x20));
      _mm256_storeu_pd(at + to_step, _mm256_permute2f128_pd(ab_odd, de_odd, 0x20));
      _mm256_storeu_pd(at + 2 * to_step, _mm256_permute2f128_pd(ab_even, de_even, 0x31));
      _mm256_storeu_pd(at + 3 * to_step, _mm256_permute2f128_pd(ab_odd, de_odd, 0x31));
    }
  }
}

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
/// See simd.h.
ONESTEP_INLINE void store_quantized(Quantized* to, IVec q) {
  const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(narrowed(q), order));
}
#endif

}  // namespace
}  // namespace onestep::kernels
