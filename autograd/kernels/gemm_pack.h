#pragma once
// Packing: the blocks of a and b that a product works on, copied to where the microkernel reads them in order. The bits of the
// result do not depend on it.
#include "autograd/kernels/simd.h"

namespace onestep::kernels {
namespace {

/// An operand of the product: element (i, p) of op(a), or (p, j) of op(b), is data[i * outer + p * inner]: `inner`
/// steps along k.
template <class T>
struct Operand {
  const T* data;
  int64_t outer, inner;

  /// What is left from element (o, p) on.
  Operand from(int64_t o, int64_t p) const { return {data + o * outer + p * inner, outer, inner}; }
};

/// to[p * width + o] = x(o, p) for o < count <= width and p < depth, where k is contiguous: SIDE x 8 transposes. Places from
/// count on are filled with copies of x(0, p): the microkernel reads them only to throw the result away.
template <int SIDE, class T>
void pack_transposed(Operand<T> x, int64_t count, int64_t depth, T* to, int64_t width) {
  for (int64_t o0 = 0; o0 < width; o0 += SIDE) {
    const T* rows[SIDE];
    for (int64_t o = 0; o < SIDE; ++o) rows[o] = x.data + (o0 + o < count ? o0 + o : 0) * x.outer;
    int64_t p = 0;
    for (; p + 8 <= depth; p += 8) {
      transpose(rows, to + p * width + o0, width);
      for (const T*& row : rows) {
        __builtin_prefetch(row + SIDE * x.outer);  // of the next rows, which else would be waited for
        row += 8;
      }
    }
    for (; p < depth; ++p) {
      for (int o = 0; o < SIDE; ++o) to[p * width + o0 + o] = *rows[o]++;
    }
  }
}

/// to[o * stride + p] = x(o, p) for o < count and p < depth, where k is contiguous.
template <class T>
void copy_rows(Operand<T> x, int64_t count, int64_t depth, T* to, int64_t stride) {
  constexpr int64_t ahead = 16;  // rows: those of the next panel
  for (int64_t o = 0; o < count; ++o, to += stride) {
    const T* const from = x.data + o * x.outer;
    int64_t p = 0;
    for (; p + kRegLanes<T> <= depth; p += kRegLanes<T>) {
      store_reg(to + p, load_reg(from + p));
      __builtin_prefetch(from + p + ahead * x.outer);
    }
    if (p < depth) store_reg_first(to + p, load_reg_first(from + p, depth - p), depth - p);
  }
}

/// Where k is strided, steps of k that are packed for all columns before the next ones, and how many steps ahead is prefetched:
/// 0 for the panel that comes next.
#if defined(ONESTEP_ISA_avx2)
inline constexpr int64_t kStepsAtOnce = 4, kStepsAhead = 8;
#else
inline constexpr int64_t kStepsAtOnce = 16, kStepsAhead = 0;
#endif

/// The same where k is strided and o contiguous; places from count on get 0.
template <class T>
void pack_copied(Operand<T> x, int64_t count, int64_t depth, T* to, int64_t width) {
  for (int64_t p = 0; p < depth; ++p) {
    const T* from = x.data + p * x.inner;
    if (width == 4) {
      for (int64_t o = 0; o < 4; ++o) to[p * 4 + o] = o < count ? from[o] : T(0);
      continue;
    }
    if (kStepsAhead > 0) __builtin_prefetch(from + kStepsAhead * x.inner);
    __builtin_prefetch(from + (kStepsAhead > 0 ? kStepsAhead * x.inner + count : 2 * count) - 1);
    for (int64_t o = 0; o < width; o += kRegLanes<T>) {
      const int64_t left = count - o;
      store_reg(to + p * width + o, left >= kRegLanes<T> ? load_reg(from + o) : load_reg_first(from + o, left > 0 ? left : 0));
    }
  }
}

/// The same for `count` groups of four at once, one behind the other, each of width 4: it reads the rows of x, which may be far
/// apart, once and in order, and prefetches the next ones, which the hardware prefetcher does not detect.
template <class T>
void pack_fours(Operand<T> x, int64_t count, int64_t depth, T* to) {
  for (int64_t p = 0; p < depth; ++p, to += 4) {
    const T* from = x.data + p * x.inner;
    __builtin_prefetch(from + 8 * x.inner);
    __builtin_prefetch(from + 8 * x.inner + 4 * count - 1);
    for (int64_t i = 0; i < count; ++i) __builtin_memcpy(to + i * depth * 4, from + i * 4, 4 * sizeof(T));
  }
}

template <class T>
void pack(Operand<T> x, int64_t count, int64_t depth, T* to, int64_t width) {
  if (x.inner != 1) return pack_copied(x, count, depth, to, width);
  width % 8 != 0 ? pack_transposed<4>(x, count, depth, to, width) : pack_transposed<8>(x, count, depth, to, width);
}

}  // namespace
}  // namespace onestep::kernels
