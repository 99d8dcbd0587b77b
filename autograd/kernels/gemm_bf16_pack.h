#pragma once
// Numbers rounded to bfloat16, packed for products, and one step of a sum in float32: on every instruction set the bits of
// VDPBF16PS of AVX512-BF16. A step takes two numbers along k, sum = a_even b_even + (a_odd b_odd + sum), each + rounded once,
// and what is subnormal is a zero of its sign, before and after: two fma on the numbers as float32, with the CPU's modes
// "denormals are zero" and "flush to zero".
#include "autograd/half.h"
#include "autograd/kernels/gemm_blocks.h"

namespace onestep::kernels {
namespace {

/// The bits of an element of a panel.
typedef uint32_t Word __attribute__((may_alias));

struct Bf16Matrix {
  Bf16Source data;
  int64_t outer, inner;

  Bf16Matrix from(int64_t o, int64_t p) const { return {data + (o * outer + p * inner), outer, inner}; }
};

#if defined(ONESTEP_ISA_generic)
struct SubnormalsAreZero {};

/// x, or a zero of its sign where the CPU's mode would flush it. It looks at the sum rounded as if exponents had no end: what
/// rounds up to the smallest normal number only among subnormals is flushed, too.
inline float flushed(float x, double exact) {
  if (x < -0x1p-126f || x > 0x1p-126f) return x;
  const double magnitude = exact < 0 ? -exact : exact;
  return magnitude < 0x1.ffffffp-127 ? __builtin_copysignf(0.0f, x) : x;
}
#else
/// Sets both modes of the CPU while it lives.
class SubnormalsAreZero {
 public:
  SubnormalsAreZero() { _mm_setcsr(before_ | 0x8040u); }
  ~SubnormalsAreZero() { _mm_setcsr(before_); }
  SubnormalsAreZero(const SubnormalsAreZero&) = delete;
  SubnormalsAreZero& operator=(const SubnormalsAreZero&) = delete;

 private:
  unsigned before_ = _mm_getcsr();
};
#endif

/// The bits of number i of a row, rounded; where the CPU has no mode for it, a subnormal number is a zero already.
template <bool STORED>
ONESTEP_INLINE uint32_t bits_at(const void* row, int64_t i) {
  const uint16_t bits = STORED ? static_cast<const uint16_t*>(row)[i] : bfloat16_of_float(static_cast<const float*>(row)[i]);
#if defined(ONESTEP_ISA_generic)
  return (bits & 0x7f80u) == 0 ? bits & 0x8000u : bits;
#else
  return bits;
#endif
}

struct Bf16Base {
  using Element = BFloat16;
  using Number = float;
  using Operand = Bf16Matrix;
  using Scope = SubnormalsAreZero;
  static constexpr bool kInPlace = false, kMultipliesTiles = false;

#if defined(ONESTEP_ISA_generic)
  ONESTEP_INLINE static FloatReg add(FloatReg a, FloatReg b) {
    for (int i = 0; i < 16; ++i) {
      const float x = flushed(a.v[i], a.v[i]), y = flushed(b.v[i], b.v[i]);
      a.v[i] = flushed(x + y, static_cast<double>(x) + static_cast<double>(y));
    }
    return a;
  }
#else
  ONESTEP_INLINE static FloatReg add(FloatReg a, FloatReg b) { return a + b; }
#endif
};

#if defined(__AVX512BF16__)

/// A step reads two numbers along k side by side, as they are stored.
struct Bf16 : Bf16Base {
  using Careful = Bf16;
  static constexpr bool kStepIsWord = true;
  static constexpr int64_t steps(int64_t depth) { return (depth + 1) / 2; }

  ONESTEP_INLINE static FloatReg multiply_add(FloatReg a, FloatReg b, FloatReg sum, Doubt&) {
    return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(a.v), reinterpret_cast<__m512bh>(b.v))};
  }
  /// The first n of 16 numbers of a row, each in the lower half of a word. Not by VCVTNEPS2BF16, which makes a zero of what is
  /// subnormal as float32 and rounds up to the smallest normal bfloat16.
  template <bool STORED>
  ONESTEP_INLINE static __m512i lower_halves(const void* row, int64_t o, int64_t n) {
    if constexpr (STORED) {
      return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first_lanes(n).v, static_cast<const uint16_t*>(row) + o));
    } else {  // bfloat16_of_float
      const Vec x = load_upto(static_cast<const float*>(row) + o, n);
      const __m512i bits = kernels::bits(x).v, tie = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
      const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), tie), 16);
      return _mm512_mask_mov_epi32(rounded, is_nan(x).v, _mm512_set1_epi32(0x7fc0));
    }
  }
  /// The first n of 32 numbers of a row, two in a word.
  template <bool STORED>
  ONESTEP_INLINE static __m512i pairs(const void* row, int64_t p, int64_t n) {
    if constexpr (STORED) {
      const auto* const from = static_cast<const uint16_t*>(row) + p;
      return n >= 32 ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16((1u << n) - 1u, from);
    } else {
      const __m256i low = _mm512_cvtepi32_epi16(lower_halves<false>(row, p, n)),
                    high = n > 16 ? _mm512_cvtepi32_epi16(lower_halves<false>(row, p + 16, n - 16)) : _mm256_setzero_si256();
      return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
  }
  /// The numbers p and p + 1 of a row as a step reads them; there is no second one at the end of an odd row. May write up to 15
  /// words past them.
  template <bool STORED>
  ONESTEP_INLINE static void write_row(const void* row, int64_t depth, Word* to) {
    for (int64_t p = 0; p < depth; p += 32) _mm512_storeu_si512(to + p / 2, pairs<STORED>(row, p, depth - p));
  }
  /// Two numbers along k of each of `count` rows, or the last one alone; zeros up to a multiple of 16 rows.
  template <bool STORED>
  ONESTEP_INLINE static void write_two(const void* even, const void* odd, int64_t count, Word* to, int64_t) {
    for (int64_t o = 0; o < count; o += 16) {
      const __m512i upper = _mm512_slli_epi32(lower_halves<STORED>(odd, o, count - o), 16);
      _mm512_storeu_si512(to + o, _mm512_or_si512(lower_halves<STORED>(even, o, count - o), upper));
    }
  }
  template <bool STORED>
  ONESTEP_INLINE static void write_last(const void* even, int64_t count, Word* to, int64_t) {
    for (int64_t o = 0; o < count; o += 16) _mm512_storeu_si512(to + o, lower_halves<STORED>(even, o, count - o));
  }
};

#else

/// Two steps read two numbers along k one after the other, the odd one first.
struct Bf16 : Bf16Base {
  using Careful = Bf16;
  static constexpr bool kStepIsWord = false;
  static constexpr int64_t steps(int64_t depth) { return (depth + 1) / 2 * 2; }

#if defined(ONESTEP_ISA_generic)
  ONESTEP_INLINE static FloatReg multiply_add(FloatReg a, FloatReg b, FloatReg sum, Doubt&) {
    for (int i = 0; i < 16; ++i) {
      const double exact = static_cast<double>(a.v[i]) * static_cast<double>(b.v[i]) + static_cast<double>(sum.v[i]);
      sum.v[i] = flushed(__builtin_fmaf(a.v[i], b.v[i], sum.v[i]), exact);
    }
    return sum;
  }
#else
  ONESTEP_INLINE static FloatReg multiply_add(FloatReg a, FloatReg b, FloatReg sum, Doubt&) { return fma(a, b, sum); }
#endif
  template <bool STORED>
  ONESTEP_INLINE static void write_row(const void* row, int64_t depth, Word* to) {
    for (int64_t p = 0; p < depth / 2; ++p) {
      to[2 * p] = bits_at<STORED>(row, 2 * p + 1) << 16;
      to[2 * p + 1] = bits_at<STORED>(row, 2 * p) << 16;
    }
    if (depth % 2 == 0) return;
    to[depth - 1] = 0;
    to[depth] = bits_at<STORED>(row, depth - 1) << 16;
  }
  template <bool STORED>
  ONESTEP_INLINE static void write_two(const void* even, const void* odd, int64_t count, Word* to, int64_t width) {
    for (int64_t o = 0; o < count; ++o) to[o] = bits_at<STORED>(odd, o) << 16;
    for (int64_t o = 0; o < count; ++o) to[width + o] = bits_at<STORED>(even, o) << 16;
  }
  template <bool STORED>
  ONESTEP_INLINE static void write_last(const void* even, int64_t count, Word* to, int64_t width) {
    for (int64_t o = 0; o < count; ++o) to[o] = 0;
    for (int64_t o = 0; o < count; ++o) to[width + o] = bits_at<STORED>(even, o) << 16;
  }
};
#endif

struct PackedBf16 : Bf16 {
  /// See gemm_pack.h, but that `to` gets steps(depth) steps.
  static void pack(const Bf16Matrix& x, int64_t count, int64_t depth, float* to, int64_t width) {
    if (kStepIsWord && x.data.stored && x.inner == 1 && x.outer % 2 == 0 && depth % 2 == 0)  // as if words were numbers
      return kernels::pack(kernels::Operand<float>{static_cast<const float*>(x.data.data), x.outer / 2, 1}, count, depth / 2,
                           to, width);
    if (x.inner != 1)
      return x.data.stored ? pack_rows<true>(x, count, depth, to, width) : pack_rows<false>(x, count, depth, to, width);
    x.data.stored ? pack_columns<true>(x, count, depth, to, width) : pack_columns<false>(x, count, depth, to, width);
  }
  static void pack_fours(const Bf16Matrix& x, int64_t count, int64_t depth, float* to) {
    x.data.stored ? write_fours<true>(x, count, depth, to) : write_fours<false>(x, count, depth, to);
  }

 private:
  static constexpr int64_t kMostWidth = 48, kDepth = 64;

  /// Where k is contiguous: a few steps of all rows, which are transposed from the L1 cache.
  template <bool STORED>
  static void pack_columns(const Bf16Matrix& x, int64_t count, int64_t depth, float* to, int64_t width) {
    alignas(64) float rows[kMostWidth * kDepth];
    for (int64_t p = 0; p < depth; p += kDepth) {
      const int64_t part = smaller(kDepth, depth - p);
      for (int64_t o = 0; o < count; ++o) {
        if constexpr (kPrefetches) {  // rows are not read in one stream
          const Bf16Matrix next = p + kDepth < depth ? x.from(o, p + kDepth) : x.from(o + count, 0);
          for (int64_t i = 0; i < kDepth; i += STORED ? 32 : 16) __builtin_prefetch(next.from(0, i).data.data);
        }
        write_row<STORED>(x.from(o, p).data.data, part, reinterpret_cast<Word*>(rows + o * kDepth));
      }
      kernels::pack(kernels::Operand<float>{rows, kDepth, 1}, count, steps(part), to + steps(p) * width, width);
    }
  }

  /// Where k is strided.
  template <bool STORED>
  static void pack_rows(const Bf16Matrix& x, int64_t count, int64_t depth, float* to, int64_t width) {
    for (int64_t p = 0; p < depth; p += 2) {
      auto* const step = reinterpret_cast<Word*>(to + steps(p) * width);
      const void* const even = x.from(0, p).data.data;
      if (p + 1 < depth)
        write_two<STORED>(even, x.from(0, p + 1).data.data, count, step, width);
      else
        write_last<STORED>(even, count, step, width);
      for (int64_t s = 0; s < steps(2); ++s)
        for (int64_t o = count; o < width; ++o) step[s * width + o] = 0;
    }
  }

  /// See gemm_pack.h: the rows of x are read once, in order.
  template <bool STORED>
  static void write_fours(const Bf16Matrix& x, int64_t count, int64_t depth, float* to) {
    for (int64_t p = 0; p < depth; p += 2) {
      for (int64_t ahead = p + 8; ahead < p + 10; ++ahead) {
        __builtin_prefetch(x.from(0, ahead).data.data);
        __builtin_prefetch(x.from(4 * count - 1, ahead).data.data);
      }
      for (int64_t i = 0; i < count; ++i) {
        auto* const step = reinterpret_cast<Word*>(to + (i * steps(depth) + steps(p)) * 4);
        const void* const even = x.from(4 * i, p).data.data;
        if (p + 1 < depth)
          write_two<STORED>(even, x.from(4 * i, p + 1).data.data, 4, step, 4);
        else
          write_last<STORED>(even, 4, step, 4);
      }
    }
  }
};

}  // namespace
}  // namespace onestep::kernels
