#pragma once
// Matrix product of one instruction set, of numbers of one kind:
//
//   struct Kind {
//     using Element = ...;         what is multiplied: float, double, BFloat16 (packed.h)
//     using Number = ...;          of which panels and sums consist
//     using Operand = ...;         a matrix as it is stored
//     static constexpr bool kInPlace;                                whether a microkernel can read an Operand
//     static int64_t steps(int64_t depth);                           of the microkernel for `depth` numbers along k
//     static void pack(Operand, count, depth, Number* to, width);    see gemm_pack.h
//     static void pack_fours(Operand, count, depth, Number* to);     of several tiles, where kPackedRows is 4
//     static Reg<Number> multiply_add(a, b, sum, Doubt&);            one step
//     using Careful = ...;         the kind whose steps leave no doubt (simd.h)
//     static Reg<Number> add(a, b);
//     static constexpr bool kMultipliesTiles;                        whether it has a microkernel of its own:
//     static void multiply_tile(rows, regs, steps, a, b, c, ldc, cols, add);
//     struct Scope {};                                               in which all of it runs
//   };
//
//   for each block of kBlockK along k               (order is part of the bits: kernels.h)
//     for each block of kBlockN columns             the packed B panel: it stays in the L2 cache
//       for each panel of kPanelTiles x kRows rows    the packed A panel, kept for the next blocks of columns
//         for each B micropanel of kRegs registers: it stays in the L1 cache
//           for each kRows rows                       a tile of c, in registers over the block of k
#include "autograd/kernels/gemm_microkernel.h"

namespace onestep::kernels {
namespace {

/// Columns of a block, as many as their part of b leaves room for in the L2 cache.
template <class T>
constexpr int64_t kBlockN = int64_t{384} * 4 / sizeof(T);

/// Elements of b, 1 MiB, that are read from the L2 cache without waiting.
inline constexpr int64_t kInL2 = int64_t{1} << 18;

/// Packing costs more than it brings where b is read by so few rows, more from the L2 cache, or has so few elements, and a by
/// so few columns: copied, one micropanel; transposed, or where a microkernel would read down the columns of a.
inline constexpr int64_t kFewRows = 12, kFewRowsInL2 = int64_t{4} * kRows, kSmallB = 1000;
template <class T>
constexpr int64_t kFewCols = int64_t{kCopiesRows ? 32 : 96} * 4 / sizeof(T);
template <class T>
constexpr int64_t kFewColsTransposed = int64_t{48} * 4 / sizeof(T);

constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t panels(int64_t n, int64_t width) { return (n + width - 1) / width; }

/// Registers of the next packed B micropanel: one alone would have too few independent accumulators.
template <class T>
int64_t regs_of_panel(int64_t cols) {
  const int64_t left = panels(cols, kRegLanes<T>);
  return kRegs > 2 && left == kRegs + 1 ? kRegs - 1 : smaller(left, kRegs);
}

inline constexpr int64_t kPackedA = kPanelTiles * kPackedRows * kBlockK;
static_assert(!kCopiesRows || kRows * kRowStride <= kPackedRows * kBlockK);

/// Rows of a that are packed once for all blocks of columns, 1 MiB of them: read from the L3 cache they are no slower than
/// packed again.
inline constexpr int64_t kMostKept = 1024;

/// All of op(b) packed: block by block of k, in each the blocks of kBlockN<T> columns.
template <class T>
int64_t padded(int64_t n) {
  return panels(n, kRegLanes<T>) * kRegLanes<T>;
}

/// Columns of a piece of packing: whole panels on every instruction set, unless one register were left over.
template <class T>
constexpr int64_t kPieceCols = int64_t{96} * 4 / sizeof(T);
template <class T>
int64_t pieces_of_block(int64_t cols) {
  return cols > kRegLanes<T> ? panels(cols - kRegLanes<T>, kPieceCols<T>) : 1;
}
template <class T>
int64_t pieces_across(int64_t n) {
  return n / kBlockN<T> * pieces_of_block<T>(kBlockN<T>) + (n % kBlockN<T> > 0 ? pieces_of_block<T>(n % kBlockN<T>) : 0);
}

/// The rows of at most kPanelTiles tiles: tile i has those from first[i] to first[i + 1], at most `tallest`.
struct Panel {
  int64_t tiles, tallest, first[kPanelTiles + 1];

  int64_t height(int64_t i) const { return first[i + 1] - first[i]; }
  int64_t rows() const { return first[tiles] - first[0]; }
};

/// The products of one kind.
template <class K>
struct Gemm {
  using T = typename K::Number;
  using Matrix = typename K::Operand;
  using Right = Packed<typename K::Element>;

  static int64_t workspace(int64_t m, int64_t n, int64_t k, bool own_c) {
    return packed_a_size(m, n) + padded<T>(smaller(n, kBlockN<T>)) * K::steps(smaller(k, kBlockK)) + (own_c ? m * n : 0);
  }
  /// Rows of a that stay packed while several blocks of columns pass, or those of one panel.
  static int64_t kept_rows(int64_t m, int64_t n) { return n > kBlockN<T> ? smaller(m, kMostKept) : kPanelTiles * kRows; }
  static int64_t packed_a_size(int64_t m, int64_t n) { return panels(panels(kept_rows(m, n), kRows), kPanelTiles) * kPackedA; }
  static int64_t packed_size(int64_t n, int64_t k) { return padded<T>(n) * K::steps(k); }
  static int64_t pack_pieces(int64_t n, int64_t k) { return panels(k, kBlockK) * pieces_across<T>(n); }

  /// Where a block of all of op(b), packed, begins.
  static const T* packed_block(const Right& b, int64_t p, int64_t j) {
    return b.data + K::steps(p) * padded<T>(b.n) + j * K::steps(smaller(kBlockK, b.k - p));
  }

  /// The columns [first, end) of panels of `cols` columns, each [steps, width]. b is read along its rows: all of k at once
  /// where that lies in a row, else a few steps of k for all columns.
  static void pack_columns(const Matrix& b, int64_t cols, int64_t depth, T* to, int64_t first, int64_t end) {
    const int64_t at_once = b.inner == 1 ? depth : kStepsAtOnce;
    for (int64_t p = 0; p < depth; p += at_once) {
      for (int64_t j = first, width; j < end; j += width) {
        width = regs_of_panel<T>(cols - j) * kRegLanes<T>;
        K::pack(b.from(j, p), smaller(width, cols - j), smaller(at_once, depth - p),
                to + j * K::steps(depth) + K::steps(p) * width, width);
      }
    }
  }

  static void pack(bool trans_b, int64_t n, int64_t k, Source<typename K::Element> b, int64_t ldb, T* to, int64_t piece) {
    const Matrix op_b = trans_b ? Matrix{b, ldb, 1} : Matrix{b, 1, ldb};
    const int64_t p = piece / pieces_across<T>(n) * kBlockK, across = piece % pieces_across<T>(n);
    const int64_t j = across / pieces_of_block<T>(kBlockN<T>) * kBlockN<T>, cols = smaller(kBlockN<T>, n - j);
    const int64_t i = across % pieces_of_block<T>(kBlockN<T>),
                  end = i + 1 == pieces_of_block<T>(cols) ? cols : (i + 1) * kPieceCols<T>;
    const int64_t depth = smaller(kBlockK, k - p);
    pack_columns(op_b.from(j, p), cols, depth, to + K::steps(p) * padded<T>(n) + j * K::steps(depth), i * kPieceCols<T>, end);
  }

  /// One block along k, all rows and `cols` columns of it.
  struct Block {
    Matrix a, b;
    const T* packed;                    // b, if it is already packed
    int64_t packed_cols, packed_depth;  // of a block of it: at least cols and depth
    int64_t rows, cols, depth;
    T* c;
    int64_t ldc;
    bool pack_a, pack_b, add;
    bool keeps_a, has_a;  // whether all panels of a have a place of their own, and are there
    Epilogue epilogue;    // of this part of c where this is its last block along k, or none

    bool copies_a() const { return kCopiesRows && K::kInPlace && a.inner == 1; }
    /// Where a panel that begins with tile t is kept.
    int64_t place_of(const Panel& panel, int64_t t) const {
      return copies_a() ? panel.first[0] * kRowStride : t * K::steps(depth) * kPackedRows;
    }
  };

  /// The panel's rows of a, tile by tile.
  static void pack_panel(const Matrix& a, const Panel& panel, int64_t depth, T* to) {
    if constexpr (kCopiesRows && K::kInPlace) {
      if (a.inner == 1) return copy_rows(a.from(panel.first[0], 0), panel.rows(), depth, to, kRowStride);
    }
    if constexpr (kPackedRows == 4 && (K::kInPlace || kPrefetches)) {
      if (a.inner != 1 && panel.rows() == 4 * panel.tiles)
        return K::pack_fours(a.from(panel.first[0], 0), panel.tiles, depth, to);
    }
    for (int64_t i = 0; i < panel.tiles; ++i, to += K::steps(depth) * kPackedRows) {
      K::pack(a.from(panel.first[i], 0), panel.height(i), depth, to, kPackedRows);
    }
  }

  /// Tile i of a panel as the microkernel reads it.
  static Operand<T> tile_of(const Block& x, const Panel& panel, const T* packed_a, int64_t i) {
    if constexpr (K::kInPlace) {
      if (!x.pack_a) return x.a.from(panel.first[i], 0);
    }
    if (x.copies_a()) return {packed_a + (panel.first[i] - panel.first[0]) * kRowStride, kRowStride, 1};
    return {packed_a + i * K::steps(x.depth) * kPackedRows, 1, kPackedRows};
  }

  /// Columns from j on as the microkernel reads them; `regs` registers of a packed b.
  static MicropanelB<T> columns_of(const Block& x, const T* packed_b, int64_t j, int64_t regs) {
    if constexpr (K::kInPlace) {
      if (!x.pack_b) return {x.b.data + j, x.b.inner};
    }
    return {packed_b + j * K::steps(x.packed_depth), regs * kRegLanes<T>};
  }

  /// All columns of a panel.
  static void multiply_panel(const Block& x, const Panel& panel, T* packed_a, const T* packed_b) {
    Operand<T> a[kPanelTiles];
    if (x.pack_a && !x.has_a) pack_panel(x.a, panel, x.depth, packed_a);
    for (int64_t i = 0; i < panel.tiles; ++i) a[i] = tile_of(x, panel, packed_a, i);
    for (int64_t j = 0, cols; j < x.cols; j += cols) {
      const int64_t most = x.pack_b ? regs_of_panel<T>(x.packed_cols - j) : regs_for(static_cast<int>(panel.tallest));
      cols = smaller(most * kRegLanes<T>, x.cols - j);
      const int64_t regs = panels(cols, kRegLanes<T>);
      const MicropanelB<T> b = columns_of(x, packed_b, j, most);
      if constexpr (K::kMultipliesTiles) {
        for (int64_t i = 0; i < panel.tiles; ++i)
          K::multiply_tile(panel.height(i), regs, K::steps(x.depth), a[i], b, x.c + panel.first[i] * x.ldc + j, x.ldc, cols,
                           x.add);
        continue;
      }
      const bool edge = !x.pack_b && cols % kRegLanes<T> != 0;
      const auto& tiles = x.pack_a && regs == most ? x.copies_a() ? kMicrokernels<K>.copied : kMicrokernels<K>.packed
                          : edge                   ? kMicrokernels<K>.in_place_edge
                                                   : kMicrokernels<K>.in_place;
      for (int64_t i = 0; i < panel.tiles; ++i) {
        tiles[panel.height(i) - 1][regs - 1](K::steps(x.depth), a[i], b, x.c + panel.first[i] * x.ldc + j, x.ldc, cols, x.add);
      }
    }
    x.epilogue(x.c + panel.first[0] * x.ldc, x.ldc, panel.first[0], panel.rows(), 0, x.cols);
  }

  static void multiply(const Block& x, T* packed_a, T* packed_b) {
    if (x.pack_b && !x.packed) pack_columns(x.b, x.cols, x.depth, packed_b, 0, x.cols);
    const int64_t tiles = panels(x.rows, kRows), height = x.rows / tiles, taller = x.rows % tiles;  // tiles one row taller
    for (int64_t t = 0; t < tiles; t += kPanelTiles) {
      Panel panel = {smaller(kPanelTiles, tiles - t), height + (taller > 0), {}};
      for (int64_t i = t; i <= t + panel.tiles; ++i) panel.first[i - t] = i * height + smaller(i, taller);
      multiply_panel(x, panel, packed_a + (x.keeps_a ? x.place_of(panel, t) : 0), x.packed ? x.packed : packed_b);
    }
  }

  static void run(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Source<typename K::Element> a, int64_t lda,
                  Source<typename K::Element> b, int64_t ldb, const Right* packed, T* c, int64_t ldc, bool accumulate,
                  const Epilogue& epilogue, T* workspace) {
    [[maybe_unused]] typename K::Scope scope;
    const Matrix op_a = trans_a ? Matrix{a, 1, lda} : Matrix{a, lda, 1};
    const Matrix op_b = trans_b ? Matrix{b, ldb, 1} : Matrix{b, 1, ldb};
    const int64_t few = n * k <= kInL2 && kFewRowsInL2 > kFewRows ? kFewRowsInL2 : kFewRows;
    const bool pack_b = !K::kInPlace || packed || trans_b || (m > few && n * k > kSmallB),
               pack_a = !K::kInPlace || (pack_b && n > (trans_a ? kFewColsTransposed<T> : kFewCols<T>));
    const bool keeps_a = pack_a && n > kBlockN<T>;
    const int64_t most = keeps_a ? kMostKept : m;
    for (int64_t i = 0; i < m; i += most) {
      for (int64_t p = 0; p < k; p += kBlockK) {
        for (int64_t j = 0; j < n; j += kBlockN<T>) {
          multiply({.a = op_a.from(i, p),
                    .b = op_b.from(j, p),
                    .packed = packed ? packed_block(*packed, p, j) : nullptr,
                    .packed_cols = smaller(kBlockN<T>, (packed ? packed->n : n) - j),
                    .packed_depth = smaller(kBlockK, (packed ? packed->k : k) - p),
                    .rows = smaller(most, m - i),
                    .cols = smaller(kBlockN<T>, n - j),
                    .depth = smaller(kBlockK, k - p),
                    .c = c + i * ldc + j,
                    .ldc = ldc,
                    .pack_a = pack_a,
                    .pack_b = pack_b,
                    .add = accumulate || p > 0,
                    .keeps_a = keeps_a,
                    .has_a = keeps_a && j > 0,
                    .epilogue = p + kBlockK >= k ? epilogue.of_part(i, j) : Epilogue{}},
                   workspace, workspace + packed_a_size(m, n));
        }
      }
    }
    if (k > 0) return;
    for (int64_t i = 0; i < m && !accumulate; ++i) {
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = T(0);
    }
    epilogue(c, ldc, 0, m, 0, n);
  }

  /// With `gemm`, which is run() or calls it.
  static Products<typename K::Element> products(decltype(Products<typename K::Element>::gemm) gemm) {
    return {workspace, packed_size, pack_pieces, pack, gemm};
  }
};

}  // namespace
}  // namespace onestep::kernels
