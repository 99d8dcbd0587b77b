#pragma once
// Packing: the blocks of a and b that a product works on, copied to where the tile reads them in order. The bits of the
// result do not depend on it.
#include "autograd/kernels/simd.h"

namespace onestep::kernels {
namespace {

/// An operand as the product sees it: element (i, p) of op(a), or (p, j) of op(b), is data[i * outer + p * inner]: `inner`
/// steps along k.
struct Operand {
  const float* data;
  int64_t outer, inner;
};

/// to[p * width + o] = x(o, p) for o < count <= width and p < depth, where k is contiguous: 8 x 8 transposes. Places from
/// count on are filled with copies of x(0, p): the tile reads them only to throw the result away.
inline void pack_transposed(Operand x, int64_t count, int64_t depth, float* to, int64_t width) {
  for (int64_t o0 = 0; o0 < width; o0 += 8) {
    const float* rows[8];
    for (int64_t o = 0; o < 8; ++o) rows[o] = x.data + (o0 + o < count ? o0 + o : 0) * x.outer;
    int64_t p = 0;
    for (; p + 8 <= depth; p += 8) {
      transpose_8x8(rows, to + p * width + o0, width);
      for (const float*& row : rows) row += 8;
    }
    for (; p < depth; ++p) {
      for (int o = 0; o < 8; ++o) to[p * width + o0 + o] = *rows[o]++;
    }
  }
}

/// The same where k is strided and o contiguous; places from count on get 0. Writes up to 15 floats beyond the end.
inline void pack_copied(Operand x, int64_t count, int64_t depth, float* to, int64_t width) {
  for (int64_t p = 0; p < depth; ++p) {
    const float* from = x.data + p * x.inner;
    for (int64_t o = 0; o < width; o += kLanes) {
      const int64_t left = count - o;
      store(to + p * width + o, left >= kLanes ? load(from + o) : load_first(from + o, left > 0 ? left : 0));
    }
  }
}

inline void pack(Operand x, int64_t count, int64_t depth, float* to, int64_t width) {
  x.inner == 1 ? pack_transposed(x, count, depth, to, width) : pack_copied(x, count, depth, to, width);
}

}  // namespace
}  // namespace onestep::kernels
