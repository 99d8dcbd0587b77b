// Matrix product of one instruction set.
//
//   for each block of kBlockK along k               (order is part of the bits: kernels.h)
//     for each block of kBlockN columns             its part of b is packed: it stays in the L2 cache
//       for each panel of at most kRows rows        its part of a is packed: it stays in the L1 cache
//         for each group of vectors of columns      a tile of c, in registers over the whole block of k
//
// The tile's inner step is an outer product: some numbers of a, each times some vectors of b. Panels of few rows take more
// vectors, so that there are always enough sums under way to hide the latency of an fma.
#include "autograd/kernels/gemm_pack.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {
namespace {

#if defined(ONESTEP_ISA_avx512)
constexpr int kRows = 14, kSums = 28;  // of 32 registers 28 hold sums, 2 b
#elif defined(ONESTEP_ISA_avx2)
constexpr int kRows = 6, kSums = 6;  // of 16 registers 12 hold sums, 2 b, 1 a
#else
constexpr int kRows = 4, kSums = 4;
#endif
constexpr int kMaxVecs = 4;
constexpr int vecs_for(int rows) { return kSums / rows < kMaxVecs ? kSums / rows : kMaxVecs; }

constexpr int64_t kPackedRows = (kRows + 7) / 8 * 8;
constexpr int64_t kBlockN = 384;

/// Packing costs more than it brings where b is read by so few rows or has so few elements, and a by so few columns.
constexpr int64_t kFewRows = 2 * kRows, kSmallB = 4096, kFewCols = 32;

/// Where a tile reads b: vector v of step p along k is at data + p * step + v * vec.
struct Vectors {
  const float* data;
  int64_t step, vec;
};

/// c[r, 0:cols] = or += the sum over p < depth of a(r, p) b(p, 0:cols), for ROWS rows; 16 (VECS - 1) < cols <= 16 VECS.
/// EDGE: columns of b from `cols` on are not there.
template <int ROWS, int VECS, bool EDGE>
ONESTEP_INLINE void tile(int64_t depth, Operand a, Vectors b, float* c, int64_t ldc, int64_t cols, bool add) {
  constexpr int64_t kLast = (VECS - 1) * kLanes;
  Vec total[ROWS][VECS];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < VECS; ++v) total[r][v] = splat(0.0f);
    __builtin_prefetch(c + r * ldc, 1);
  }
  const int64_t last = cols - kLast;
  for (int64_t p = 0; p < depth; ++p) {
    Vec row[VECS];
#pragma GCC unroll 16
    for (int v = 0; v < VECS; ++v) {
      row[v] = EDGE && v == VECS - 1 ? load_first(b.data + v * b.vec, last) : load(b.data + v * b.vec);
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
      const Vec scalar = splat(a.data[r * a.outer]);
#pragma GCC unroll 16
      for (int v = 0; v < VECS; ++v) total[r][v] = fma(scalar, row[v], total[r][v]);
    }
    a.data += a.inner;
    b.data += b.step;
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < VECS; ++v) {
      float* to = c + r * ldc + v * kLanes;
      if (v == VECS - 1 && last < kLanes) {
        store_first(to, add ? load_first(to, last) + total[r][v] : total[r][v], last);
      } else {
        store(to, add ? load(to) + total[r][v] : total[r][v]);
      }
    }
  }
}

using Tile = void (*)(int64_t depth, const Operand& a, const Vectors& b, float* c, int64_t ldc, int64_t cols, bool add);

template <int ROWS, int VECS>
void packed_tile(int64_t depth, const Operand& a, const Vectors& b, float* c, int64_t ldc, int64_t cols, bool add) {
  tile<ROWS, VECS, false>(depth, {a.data, 1, kPackedRows}, {b.data, kLanes, b.vec}, c, ldc, cols, add);
}
template <int ROWS, int VECS, bool EDGE>
void in_place_tile(int64_t depth, const Operand& a, const Vectors& b, float* c, int64_t ldc, int64_t cols, bool add) {
  tile<ROWS, VECS, EDGE>(depth, a, b, c, ldc, cols, add);
}

/// [rows - 1][vecs - 1]: for packed a and b (their steps are constants), for others, and for a last vector that ends early.
struct Tiles {
  Tile packed[kRows][kMaxVecs], in_place[kRows][kMaxVecs], in_place_edge[kRows][kMaxVecs];
};

template <int ROWS = kRows, int VECS = vecs_for(kRows)>
constexpr void fill(Tiles& t) {
  t.packed[ROWS - 1][VECS - 1] = packed_tile<ROWS, VECS>;
  t.in_place[ROWS - 1][VECS - 1] = in_place_tile<ROWS, VECS, false>;
  t.in_place_edge[ROWS - 1][VECS - 1] = in_place_tile<ROWS, VECS, true>;
  if constexpr (VECS > 1) fill<ROWS, VECS - 1>(t);
  if constexpr (VECS == 1 && ROWS > 1) fill<ROWS - 1, vecs_for(ROWS - 1)>(t);
}

constexpr Tiles kTiles = [] {
  Tiles t{};
  fill(t);
  return t;
}();

constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t panels(int64_t n, int64_t width) { return (n + width - 1) / width; }

constexpr int64_t kPackedA = kPackedRows * kBlockK + kLanes;

int64_t gemm_workspace(int64_t, int64_t n, int64_t k) {
  return kPackedA + panels(smaller(n, kBlockN), kLanes) * kLanes * smaller(k, kBlockK) + kLanes;
}

/// Vectors of columns, each [depth, 16]. b is read along its rows: all of k at once where that lies in a row, else a few
/// steps of k for all columns.
void pack_b(Operand b, int64_t cols, int64_t depth, float* to) {
  const int64_t steps = b.inner == 1 ? depth : 16;
  for (int64_t p = 0; p < depth; p += steps) {
    for (int64_t j = 0; j < cols; j += kLanes) {
      const Operand block = {b.data + j * b.outer + p * b.inner, b.outer, b.inner};
      pack(block, smaller(kLanes, cols - j), smaller(steps, depth - p), to + j * depth + p * kLanes, kLanes);
    }
  }
}

/// One block along k, all rows and `cols` columns of it.
struct Block {
  Operand a, b;
  int64_t rows, cols, depth;
  float* c;
  int64_t ldc;
  bool pack_a, pack_b, add;
};

void multiply(const Block& x, float* packed_a, float* packed_b) {
  if (x.pack_b) pack_b(x.b, x.cols, x.depth, packed_b);
  const int64_t row_panels = panels(x.rows, kRows);
  for (int64_t panel = 0; panel < row_panels; ++panel) {  // of equal height, as far as possible
    const int64_t i = x.rows * panel / row_panels, rows = x.rows * (panel + 1) / row_panels - i;
    Operand a = {x.a.data + i * x.a.outer, x.a.outer, x.a.inner};
    if (x.pack_a) {
      pack(a, rows, x.depth, packed_a, kPackedRows);
      a.data = packed_a;
    }
    const int64_t width = kLanes * vecs_for(static_cast<int>(rows));
    for (int64_t j = 0; j < x.cols; j += width) {
      const int64_t cols = smaller(width, x.cols - j), vecs = panels(cols, kLanes);
      const Vectors b =
          x.pack_b ? Vectors{packed_b + j * x.depth, kLanes, kLanes * x.depth} : Vectors{x.b.data + j, x.b.inner, kLanes};
      const bool edge = !x.pack_b && cols % kLanes != 0;
      const auto& tiles = x.pack_a ? kTiles.packed : edge ? kTiles.in_place_edge : kTiles.in_place;
      tiles[rows - 1][vecs - 1](x.depth, a, b, x.c + i * x.ldc + j, x.ldc, cols, x.add);
    }
  }
}

void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
          float* c, int64_t ldc, bool accumulate, float* workspace) {
  const Operand op_a = trans_a ? Operand{a, 1, lda} : Operand{a, lda, 1};
  const Operand op_b = trans_b ? Operand{b, ldb, 1} : Operand{b, 1, ldb};
  const bool pack_b = trans_b || (m > kFewRows && n * k > kSmallB), pack_a = pack_b && n > kFewCols;
  for (int64_t p = 0; p < k; p += kBlockK) {
    for (int64_t j = 0; j < n; j += kBlockN) {
      multiply({.a = {a + p * op_a.inner, op_a.outer, op_a.inner},
                .b = {b + p * op_b.inner + j * op_b.outer, op_b.outer, op_b.inner},
                .rows = m,
                .cols = smaller(kBlockN, n - j),
                .depth = smaller(kBlockK, k - p),
                .c = c + j,
                .ldc = ldc,
                .pack_a = pack_a,
                .pack_b = pack_b,
                .add = accumulate || p > 0},
               workspace, workspace + kPackedA);
    }
  }
  if (k > 0 || accumulate) return;
  for (int64_t i = 0; i < m; ++i) map(c + i * ldc, c + i * ldc, n, [](Vec) { return splat(0.0f); });
}

}  // namespace

namespace ONESTEP_ISA_NAME {

void fill_gemm(Table<float>& t) {
  t.gemm_workspace = gemm_workspace;
  t.gemm = gemm;
}

}  // namespace ONESTEP_ISA_NAME
}  // namespace onestep::kernels
