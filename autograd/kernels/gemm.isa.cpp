// Matrix product of one instruction set.
//
//   for each block of kBlockK along k               (order is part of the bits: kernels.h)
//     for each block of kBlockN columns             its part of b is packed: it stays in the L2 cache
//       for each panel of kRows rows                its part of a is packed: it stays in the L1 cache
//         for each panel of kCols columns           a tile of c, in registers over the whole block of k
//
// The tile's inner step is an outer product: kRows numbers of a, each times a row of kCols numbers of b.
#include "autograd/kernels/gemm_pack.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {
namespace {

#if defined(ONESTEP_ISA_avx512)
constexpr int kRows = 14, kVecs = 2;  // 28 accumulators, 2 registers of b, of 32
#elif defined(ONESTEP_ISA_avx2)
constexpr int kRows = 6, kVecs = 1;  // 12 accumulators, 2 registers of b, 1 of a, of 16
#else
constexpr int kRows = 4, kVecs = 1;
#endif
constexpr int64_t kCols = kVecs * kLanes;
constexpr int64_t kPackedRows = (kRows + 7) / 8 * 8;
constexpr int64_t kBlockN = 384;

/// Packing costs more than it brings where b is read by so few rows or has so few elements, and a by so few columns.
constexpr int64_t kFewRows = 2 * kRows, kSmallB = 4096, kFewCols = 2 * kCols;

/// c[r, 0:cols] = or += the sum over p < depth of a(r, p) b(p, 0:cols), for ROWS rows; cols <= 16 VECS. EDGE: columns from
/// `cols` on are not there.
template <int ROWS, int VECS, bool EDGE>
ONESTEP_INLINE void tile(int64_t depth, Operand a, const float* b, int64_t b_step, float* c, int64_t ldc, int64_t cols,
                         bool add) {
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
      row[v] = EDGE && v == VECS - 1 ? load_first(b + v * kLanes, last) : load(b + v * kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
      const Vec scalar = splat(a.data[r * a.outer]);
#pragma GCC unroll 16
      for (int v = 0; v < VECS; ++v) total[r][v] = fma(scalar, row[v], total[r][v]);
    }
    a.data += a.inner;
    b += b_step;
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

using Tile = void (*)(int64_t depth, const Operand& a, const float* b, int64_t b_step, float* c, int64_t ldc, int64_t cols,
                      bool add);

template <int ROWS, int VECS>
void packed_tile(int64_t depth, const Operand& a, const float* b, int64_t, float* c, int64_t ldc, int64_t cols, bool add) {
  tile<ROWS, VECS, false>(depth, {a.data, 1, kPackedRows}, b, kCols, c, ldc, cols, add);
}
template <int ROWS, int VECS, bool EDGE>
void in_place_tile(int64_t depth, const Operand& a, const float* b, int64_t b_step, float* c, int64_t ldc, int64_t cols,
                   bool add) {
  tile<ROWS, VECS, EDGE>(depth, a, b, b_step, c, ldc, cols, add);
}

/// [rows - 1][vecs - 1]: for packed a and b (their steps are constants), for others, and for a last vector that ends early.
struct Tiles {
  Tile packed[kRows][kVecs], in_place[kRows][kVecs], in_place_edge[kRows][kVecs];
};

template <int ROWS = kRows, int VECS = kVecs>
constexpr void fill(Tiles& t) {
  t.packed[ROWS - 1][VECS - 1] = packed_tile<ROWS, VECS>;
  t.in_place[ROWS - 1][VECS - 1] = in_place_tile<ROWS, VECS, false>;
  t.in_place_edge[ROWS - 1][VECS - 1] = in_place_tile<ROWS, VECS, true>;
  if constexpr (VECS > 1) fill<ROWS, VECS - 1>(t);
  if constexpr (VECS == 1 && ROWS > 1) fill<ROWS - 1, kVecs>(t);
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
  return kPackedA + panels(smaller(n, kBlockN), kCols) * kCols * smaller(k, kBlockK) + kLanes;
}

/// Panels of kCols columns, each [depth, kCols]; a few steps of k for all panels at a time, along the rows of b.
void pack_b(Operand b, int64_t cols, int64_t depth, float* to) {
  constexpr int64_t kSteps = 16;
  for (int64_t p = 0; p < depth; p += kSteps) {
    for (int64_t j = 0; j < cols; j += kCols) {
      const Operand block = {b.data + j * b.outer + p * b.inner, b.outer, b.inner};
      pack(block, smaller(kCols, cols - j), smaller(kSteps, depth - p), to + j * depth + p * kCols, kCols);
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
    for (int64_t j = 0; j < x.cols; j += kCols) {
      const int64_t cols = smaller(kCols, x.cols - j), vecs = panels(cols, kLanes);
      const float* b = x.pack_b ? packed_b + j * x.depth : x.b.data + j;
      const auto& tiles = x.pack_a ? kTiles.packed : x.pack_b || cols == vecs * kLanes ? kTiles.in_place : kTiles.in_place_edge;
      tiles[rows - 1][vecs - 1](x.depth, a, b, x.pack_b ? kCols : x.b.inner, x.c + i * x.ldc + j, x.ldc, cols, x.add);
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
