#pragma once
#pragma GCC system_header
// Stands in for the compiler's header where the avx512 kernels are built with ONESTEP_EMULATE_AVX512 (CMake): SIMDe computes
// what an AVX-512 instruction does, so that the kernels run, and are tested, on a machine that has none.
#include_next <immintrin.h>
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#define __m512 simde__m512
#define __m512i simde__m512i

// What SIMDe 0.7.4 lacks. In place: callers do not align what they pass in memory to 64 bytes.
#define ONESTEP_EMULATED inline __attribute__((always_inline))
template <class V, class T>
ONESTEP_EMULATED V emulated_load_first(unsigned mask, const T* p) {
  T lanes[sizeof(V) / sizeof(T)];
  for (unsigned i = 0; i < sizeof(V) / sizeof(T); ++i) lanes[i] = mask >> i & 1 ? p[i] : T(0);
  V x;
  __builtin_memcpy(&x, lanes, sizeof x);
  return x;
}
template <class V, class T>
ONESTEP_EMULATED void emulated_store_first(T* p, unsigned mask, V x) {
  T lanes[sizeof(V) / sizeof(T)];
  __builtin_memcpy(lanes, &x, sizeof x);
  for (unsigned i = 0; i < sizeof(V) / sizeof(T); ++i)
    if (mask >> i & 1) p[i] = lanes[i];
}
ONESTEP_EMULATED simde__m512 emulated_to_float(simde__m512i x) {
  const simde__m512i_private a = simde__m512i_to_private(x);
  simde__m512_private r;
  for (int i = 0; i < 16; ++i) r.f32[i] = static_cast<float>(a.i32[i]);
  return simde__m512_from_private(r);
}
ONESTEP_EMULATED simde__m512i emulated_widen(__m256i x) {
  const simde__m256i_private a = simde__m256i_to_private(x);
  simde__m512i_private r;
  for (int i = 0; i < 16; ++i) r.i32[i] = a.u16[i];
  return simde__m512i_from_private(r);
}
ONESTEP_EMULATED __m256i emulated_narrow(simde__m512i x) {
  const simde__m512i_private a = simde__m512i_to_private(x);
  simde__m256i_private r;
  for (int i = 0; i < 16; ++i) r.i16[i] = static_cast<int16_t>(a.i32[i]);
  return simde__m256i_from_private(r);
}
ONESTEP_EMULATED simde__m512i emulated_shift_right(simde__m512i x, int n) {
  simde__m512i_private a = simde__m512i_to_private(x);
  for (int i = 0; i < 16; ++i) a.i32[i] >>= n;
  return simde__m512i_from_private(a);
}
ONESTEP_EMULATED simde__m512 emulated_shuffle_quarters(simde__m512 x, simde__m512 y, int order) {
  const simde__m512_private a = simde__m512_to_private(x), b = simde__m512_to_private(y);
  simde__m512_private r;
  for (int i = 0; i < 4; ++i) r.m128[i] = (i < 2 ? a : b).m128[order >> 2 * i & 3];
  return simde__m512_from_private(r);
}
#define _mm512_shuffle_f32x4(x, y, order) emulated_shuffle_quarters(x, y, order)
#define _mm512_maskz_loadu_ps(mask, p) emulated_load_first<simde__m512>(mask, p)
#define _mm512_mask_storeu_ps(p, mask, x) emulated_store_first(p, mask, x)
#define _mm512_maskz_loadu_pd(mask, p) emulated_load_first<simde__m512d>(mask, p)
#define _mm512_mask_storeu_pd(p, mask, x) emulated_store_first(p, mask, x)
#define _mm512_cvtepu16_epi32(x) emulated_widen(x)
#define _mm512_cvtepi32_epi16(x) emulated_narrow(x)
#define _mm512_cvtepi32_ps(x) emulated_to_float(x)
#define _mm512_srai_epi32(x, n) emulated_shift_right(x, n)
#define _mm512_extractf32x8_ps(x, half) (simde__m512_to_private(x).m256[half])
#undef _mm512_madd_epi16  // an alias with as many arguments as its masked form has
#define _mm512_madd_epi16(a, b) simde_mm512_madd_epi16(a, b)
