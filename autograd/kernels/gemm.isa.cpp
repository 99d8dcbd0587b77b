// Matrix product of one instruction set.
//
//   for each block of kBlockK along k               (order is part of the bits: kernels.h)
//     for each block of kBlockN columns             its part of b is packed: it stays in the L2 cache
//       for each panel of kPanelTiles x kRows rows    its part of a is packed, too
//         for each panel of kRegs registers of columns: it stays in the L1 cache
//           for each kRows rows                       a tile of c, in registers over the block of k
//
// The tile's inner step is an outer product: some numbers of a, each times some registers of b. It wants many sums under way,
// to hide the latency of an fma, and few instructions that are none: 4 x 24 takes 7 loads for 12 of them (6 x 16 takes 8, which
// is felt where another program shares the core). kUnroll such steps follow each other.
#include "autograd/kernels/gemm_few_rows.h"
#include "autograd/kernels/gemm_pack.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {
namespace {

#if defined(ONESTEP_ISA_avx512)
constexpr int kRows = 14, kRegs = 2, kMaxRegs = 4, kPanelTiles = 1, kUnroll = 4;  // of 32 registers 28 hold sums, 2 b
#elif defined(ONESTEP_ISA_avx2)
constexpr int kRows = 4, kRegs = 3, kMaxRegs = 8, kPanelTiles = 8, kUnroll = 8;  // of 16 registers 12 hold sums, 3 b, 1 a
#else
constexpr int kRows = 4, kRegs = 1, kMaxRegs = 4, kPanelTiles = 2, kUnroll = 4;
#endif
/// Registers of columns that a tile of few rows takes where it reads b in place.
constexpr int regs_for(int rows) { return kRows * kRegs / rows < kMaxRegs ? kRows * kRegs / rows : kMaxRegs; }

constexpr int64_t kPackedRows = kRows <= 4 ? 4 : 16;
constexpr int64_t kBlockN = 384;

/// Packing costs more than it brings where b is read by so few rows or has so few elements, and a by so few columns (fewer do
/// where a tile would read down the columns of a).
constexpr int64_t kFewRows = 12, kSmallB = 1000, kFewCols = 96, kFewColsTransposed = 48;

/// Where a tile reads b: the columns of step p along k start at data + p * step.
struct Columns {
  const float* data;
  int64_t step;
};

/// c[r, 0:cols] = or += the sum over p < depth of a(r, p) b(p, 0:cols), for ROWS rows; REGS - 1 registers < cols <= REGS.
/// EDGE: columns of b from `cols` on are not there.
template <int ROWS, int REGS, bool EDGE>
ONESTEP_INLINE void tile(int64_t depth, Operand a, Columns b, float* c, int64_t ldc, int64_t cols, bool add) {
  Reg total[ROWS][REGS];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < REGS; ++v) total[r][v] = splat_reg(0.0f);
    __builtin_prefetch(c + r * ldc, 1);
    __builtin_prefetch(c + r * ldc + cols - 1, 1);
  }
  const int64_t last = cols - (REGS - 1) * kRegLanes;
  const auto step = [&](const float* a_step, const float* b_step) {
    Reg row[REGS];
#pragma GCC unroll 16
    for (int v = 0; v < REGS; ++v) {
      const float* from = b_step + v * kRegLanes;
      row[v] = EDGE && v == REGS - 1 ? load_reg_first(from, last) : load_reg(from);
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
      const Reg scalar = splat_reg(a_step[r * a.outer]);
#pragma GCC unroll 16
      for (int v = 0; v < REGS; ++v) total[r][v] = fma(scalar, row[v], total[r][v]);
      keep(scalar);  // or GCC sums into its register, runs out of them and reads b from the cache again and again
    }
  };
  for (int64_t left = depth / kUnroll; left > 0; --left, a.data += kUnroll * a.inner, b.data += kUnroll * b.step) {
#pragma GCC unroll 16
    for (int u = 0; u < kUnroll; ++u) step(a.data + u * a.inner, b.data + u * b.step);
  }
  for (int64_t left = depth % kUnroll; left > 0; --left, a.data += a.inner, b.data += b.step) step(a.data, b.data);
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < REGS; ++v) {
      float* to = c + r * ldc + v * kRegLanes;
      if (v == REGS - 1 && last < kRegLanes) {
        store_reg_first(to, add ? load_reg_first(to, last) + total[r][v] : total[r][v], last);
      } else {
        store_reg(to, add ? load_reg(to) + total[r][v] : total[r][v]);
      }
    }
  }
}

using Tile = void (*)(int64_t depth, const Operand& a, const Columns& b, float* c, int64_t ldc, int64_t cols, bool add);

template <int ROWS, int REGS>
void packed_tile(int64_t depth, const Operand& a, const Columns& b, float* c, int64_t ldc, int64_t cols, bool add) {
  tile<ROWS, REGS, false>(depth, {a.data, 1, kPackedRows}, {b.data, REGS * kRegLanes}, c, ldc, cols, add);
}
template <int ROWS, int REGS, bool EDGE>
void in_place_tile(int64_t depth, const Operand& a, const Columns& b, float* c, int64_t ldc, int64_t cols, bool add) {
  tile<ROWS, REGS, EDGE>(depth, a, b, c, ldc, cols, add);
}

/// [rows - 1][registers - 1]: for packed a and b (their steps are constants), for others, and for a last register that ends
/// early.
struct Tiles {
  Tile packed[kRows][kMaxRegs], in_place[kRows][kMaxRegs], in_place_edge[kRows][kMaxRegs];
};

template <int ROWS = kRows, int REGS = regs_for(kRows)>
constexpr void fill(Tiles& t) {
  if constexpr (REGS <= kRegs) t.packed[ROWS - 1][REGS - 1] = packed_tile<ROWS, REGS>;
  t.in_place[ROWS - 1][REGS - 1] = in_place_tile<ROWS, REGS, false>;
  t.in_place_edge[ROWS - 1][REGS - 1] = in_place_tile<ROWS, REGS, true>;
  if constexpr (REGS > 1) fill<ROWS, REGS - 1>(t);
  if constexpr (REGS == 1 && ROWS > 1) fill<ROWS - 1, regs_for(ROWS - 1)>(t);
}

constexpr Tiles kTiles = [] {
  Tiles t{};
  fill(t);
  return t;
}();

constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t panels(int64_t n, int64_t width) { return (n + width - 1) / width; }

/// Registers of the next panel of packed columns: one alone would have too few sums under way.
int64_t regs_of_panel(int64_t cols) {
  const int64_t left = panels(cols, kRegLanes);
  return kRegs > 2 && left == kRegs + 1 ? kRegs - 1 : smaller(left, kRegs);
}

constexpr int64_t kPackedA = kPanelTiles * kPackedRows * kBlockK;

int64_t gemm_workspace(int64_t n, int64_t k) {
  return kPackedA + panels(smaller(n, kBlockN), kRegLanes) * kRegLanes * smaller(k, kBlockK);
}

/// The columns [j, end) of panels of `cols` columns, each [depth, width]. b is read along its rows: all of k at once where that
/// lies in a row, else a few steps of k for all columns.
void pack_b(Operand b, int64_t cols, int64_t depth, float* to, int64_t first, int64_t end) {
  const int64_t steps = b.inner == 1 ? depth : 16;
  for (int64_t p = 0; p < depth; p += steps) {
    for (int64_t j = first, width; j < end; j += width) {
      width = regs_of_panel(cols - j) * kRegLanes;
      const Operand block = {b.data + j * b.outer + p * b.inner, b.outer, b.inner};
      pack(block, smaller(width, cols - j), smaller(steps, depth - p), to + j * depth + p * width, width);
    }
  }
}

/// All of op(b) packed: block by block of k, in each the blocks of kBlockN columns, so that a block is where this says.
int64_t padded(int64_t n) { return panels(n, kRegLanes) * kRegLanes; }
int64_t packed_size(int64_t n, int64_t k) { return padded(n) * k; }
const float* packed_block(const Packed<float>& b, int64_t p, int64_t j) {
  return b.data + p * padded(b.n) + j * smaller(kBlockK, b.k - p);
}

/// Columns of a piece of packing: whole panels on every instruction set, unless one register were left over.
constexpr int64_t kPieceCols = 96;
int64_t pieces_of_block(int64_t cols) { return cols > kRegLanes ? panels(cols - kRegLanes, kPieceCols) : 1; }
int64_t pieces_across(int64_t n) {
  return n / kBlockN * pieces_of_block(kBlockN) + (n % kBlockN > 0 ? pieces_of_block(n % kBlockN) : 0);
}
int64_t pack_pieces(int64_t n, int64_t k) { return panels(k, kBlockK) * pieces_across(n); }

void pack_piece(bool trans_b, int64_t n, int64_t k, const float* b, int64_t ldb, float* to, int64_t piece) {
  const Operand op_b = trans_b ? Operand{b, ldb, 1} : Operand{b, 1, ldb};
  const int64_t p = piece / pieces_across(n) * kBlockK, across = piece % pieces_across(n);
  const int64_t j = across / pieces_of_block(kBlockN) * kBlockN, cols = smaller(kBlockN, n - j);
  const int64_t i = across % pieces_of_block(kBlockN), end = i + 1 == pieces_of_block(cols) ? cols : (i + 1) * kPieceCols;
  const int64_t depth = smaller(kBlockK, k - p);
  pack_b({op_b.data + p * op_b.inner + j * op_b.outer, op_b.outer, op_b.inner}, cols, depth, to + p * padded(n) + j * depth,
         i * kPieceCols, end);
}

/// One block along k, all rows and `cols` columns of it.
struct Block {
  Operand a, b;
  const float* packed;                // b, if it is already packed
  int64_t packed_cols, packed_depth;  // of a block of it: at least cols and depth
  int64_t rows, cols, depth;
  float* c;
  int64_t ldc;
  bool pack_a, pack_b, add;
};

/// The rows of at most kPanelTiles tiles: tile i has those from first[i] to first[i + 1], at most `tallest`.
struct Panel {
  int64_t tiles, tallest, first[kPanelTiles + 1];

  int64_t height(int64_t i) const { return first[i + 1] - first[i]; }
  int64_t rows() const { return first[tiles] - first[0]; }
};

/// The panel's rows of a, tile by tile.
void pack_panel(const Operand& a, const Panel& panel, int64_t depth, float* to) {
  if constexpr (kPackedRows == 4) {
    if (a.inner != 1 && panel.rows() == 4 * panel.tiles)
      return pack_fours({a.data + panel.first[0], 1, a.inner}, panel.tiles, depth, to);
  }
  for (int64_t i = 0; i < panel.tiles; ++i, to += depth * kPackedRows) {
    pack({a.data + panel.first[i] * a.outer, a.outer, a.inner}, panel.height(i), depth, to, kPackedRows);
  }
}

/// All columns of a panel.
void multiply_panel(const Block& x, const Panel& panel, float* packed_a, const float* packed_b) {
  Operand a[kPanelTiles];
  if (x.pack_a) pack_panel(x.a, panel, x.depth, packed_a);
  for (int64_t i = 0; i < panel.tiles; ++i) {
    a[i] = x.pack_a ? Operand{packed_a + i * x.depth * kPackedRows, 1, kPackedRows}
                    : Operand{x.a.data + panel.first[i] * x.a.outer, x.a.outer, x.a.inner};
  }
  for (int64_t j = 0, cols; j < x.cols; j += cols) {
    const int64_t most = x.pack_b ? regs_of_panel(x.packed_cols - j) : regs_for(static_cast<int>(panel.tallest));
    cols = smaller(most * kRegLanes, x.cols - j);
    const int64_t regs = panels(cols, kRegLanes);
    const Columns b = x.pack_b ? Columns{packed_b + j * x.packed_depth, most * kRegLanes} : Columns{x.b.data + j, x.b.inner};
    const bool edge = !x.pack_b && cols % kRegLanes != 0;
    const auto& tiles = x.pack_a && regs == most ? kTiles.packed : edge ? kTiles.in_place_edge : kTiles.in_place;
    for (int64_t i = 0; i < panel.tiles; ++i) {
      tiles[panel.height(i) - 1][regs - 1](x.depth, a[i], b, x.c + panel.first[i] * x.ldc + j, x.ldc, cols, x.add);
    }
  }
}

void multiply(const Block& x, float* packed_a, float* packed_b) {
  if (x.pack_b && !x.packed) pack_b(x.b, x.cols, x.depth, packed_b, 0, x.cols);
  const int64_t tiles = panels(x.rows, kRows), height = x.rows / tiles, taller = x.rows % tiles;  // tiles one row taller
  for (int64_t t = 0; t < tiles; t += kPanelTiles) {
    Panel panel = {smaller(kPanelTiles, tiles - t), height + (taller > 0), {}};
    for (int64_t i = t; i <= t + panel.tiles; ++i) panel.first[i - t] = i * height + smaller(i, taller);
    multiply_panel(x, panel, packed_a, x.packed ? x.packed : packed_b);
  }
}

void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
          const Packed<float>* packed, float* c, int64_t ldc, bool accumulate, float* workspace) {
  const Operand op_a = trans_a ? Operand{a, 1, lda} : Operand{a, lda, 1};
  const Operand op_b = trans_b ? Operand{b, ldb, 1} : Operand{b, 1, ldb};
  if (trans_b && !packed && m <= kMostDirectRows && k > 0) return few_rows(m, n, k, op_a, b, ldb, c, ldc, accumulate);
  const bool pack_b = packed || trans_b || (m > kFewRows && n * k > kSmallB),
             pack_a = pack_b && n > (trans_a ? kFewColsTransposed : kFewCols);
  for (int64_t p = 0; p < k; p += kBlockK) {
    for (int64_t j = 0; j < n; j += kBlockN) {
      multiply({.a = {a + p * op_a.inner, op_a.outer, op_a.inner},
                .b = {b + p * op_b.inner + j * op_b.outer, op_b.outer, op_b.inner},
                .packed = packed ? packed_block(*packed, p, j) : nullptr,
                .packed_cols = smaller(kBlockN, (packed ? packed->n : n) - j),
                .packed_depth = smaller(kBlockK, (packed ? packed->k : k) - p),
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
  t.packed_size = packed_size;
  t.pack_pieces = pack_pieces;
  t.pack = pack_piece;
  t.gemm = gemm;
}

}  // namespace ONESTEP_ISA_NAME
}  // namespace onestep::kernels
