#pragma once
// Products of bfloat16 by AMX, with the bits of gemm_bf16_tiles.h. These do not depend on blocks of k, so much of k is summed
// while a panel of c is in the caches:
//
//   for each 512 numbers along k, or 2,048 where rows of a are read as they are stored
//     for each block of columns                b packed: it stays in the L2 cache
//       for each panel of 32 rows                its sums stay there, too
//         for each block along k                   rows of a as AMX loads them
//           for each 32 columns                      32 x 32 sums in tiles 0 to 3; 4 and 5 are rows of a, 6 and 7 columns of b
#include "autograd/kernels/gemm_bf16_pack.h"
#include "autograd/kernels/tile_config.h"

namespace onestep::kernels {
namespace {

class AmxGemm : Bf16 {
 public:
  /// With own_c the sums lie there, too: of a panel, or of all of c where several blocks of k add to them.
  static int64_t workspace(int64_t m, int64_t n, int64_t k, bool own_c) {
    const int64_t deep = steps(smaller(k, Blocks::kDeep)), deep_in_place = steps(smaller(k, Blocks::kDeepInPlace));
    const int64_t a_rows = Blocks::may_keep_a(n, deep) ? smaller(padded(m), padded(Blocks::kMostA / deep)) : kRowsOfPanel;
    const int64_t copied = a_rows * deep, in_place = kRowsOfPanel * deep_in_place, cols = Blocks::most_cols(n, deep),
                  c = kRowsOfPanel * cols;
    return larger(copied, in_place) + larger(cols * deep, Blocks::most_cols(n, deep_in_place) * deep_in_place) +
           (own_c ? larger(c, k > Blocks::kDeep ? m * n : 0) : 0);
  }
  static int64_t packed_size(int64_t n, int64_t k) { return padded(n) * steps(k); }
  static int64_t pack_pieces(int64_t n, int64_t k) { return panels(n, kPieceCols) * panels(k, kPieceDepth); }

  static void pack(bool trans_b, int64_t n, int64_t k, Bf16Source b, int64_t ldb, float* to, int64_t piece) {
    const int64_t j = piece / panels(k, kPieceDepth) * kPieceCols, p = piece % panels(k, kPieceDepth) * kPieceDepth;
    pack_columns(matrix(b, trans_b, ldb).from(j, p), smaller(kPieceCols, n - j), smaller(kPieceDepth, k - p),
                 to + j * steps(k) + steps(p) * kColsOfPanel, steps(k));
  }

  static void run(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Bf16Source a, int64_t lda, Bf16Source b,
                  int64_t ldb, const Packed<BFloat16>* packed, float* c, int64_t ldc, bool accumulate, const Epilogue& epilogue,
                  float* workspace) {
    const Tiles tiles;
    const Bf16Matrix op_a = matrix(a, !trans_a, lda), op_b = matrix(b, trans_b, ldb);
    const Blocks blocks(m, n, k, op_a.data.stored && op_a.inner == 1 && k % (2 * kSide) == 0);
    float *const packed_b = workspace + blocks.a_size(), *const sums = packed_b + blocks.b_size();
    const bool one_panel = !c && !blocks.adds();
    float* const to = c ? c : sums;
    const int64_t ld = c ? ldc : one_panel ? blocks.cols : n;
    for (int64_t p = 0; p == 0 || p < k; p += blocks.deepest) {
      const int64_t depth = smaller(blocks.depth, k - p);
      for (int64_t j = 0; j < n; j += blocks.cols) {
        const int64_t cols = smaller(blocks.cols, n - j);
        if (!packed) pack_columns(op_b.from(j, p), cols, depth, packed_b, steps(depth));
        for (int64_t i = 0; i < m; i += kRowsOfPanel) {
          const Panel panel = {.rows = smaller(kRowsOfPanel, m - i),
                               .cols = cols,
                               .depth = depth,
                               .b = packed ? packed->data + j * steps(packed->k) + steps(p) * kColsOfPanel : packed_b,
                               .b_words = steps(packed ? packed->k : depth),
                               .c = one_panel ? to : to + i * ld + j,
                               .ldc = ld,
                               .whole = one_panel,
                               .add = accumulate || p > 0};
          multiply_panel(panel, op_a.from(i, p), blocks.in_place, workspace + (blocks.keeps_a ? i * steps(depth) : 0),
                         j > 0 && blocks.keeps_a);
          if (p + depth >= k) epilogue(panel.c, panel.ldc, i, panel.rows, j, cols);
        }
      }
    }
  }

  static Products<BFloat16> products() { return {workspace, packed_size, pack_pieces, pack, run}; }

 private:
  static constexpr int64_t kSide = 16;  // rows of a tile, and words of a row
  static constexpr int64_t kRowsOfPanel = 32, kColsOfPanel = 32;
  static constexpr int64_t kPieceCols = 128, kPieceDepth = 256, kDepthAtOnce = 16;  // of packing b

  static int64_t padded(int64_t n) { return panels(n, kColsOfPanel) * kColsOfPanel; }
  static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
  static Bf16Matrix matrix(Bf16Source x, bool along_k, int64_t ld) {
    return along_k ? Bf16Matrix{x, ld, 1} : Bf16Matrix{x, 1, ld};
  }

  /// How a product is cut. More of k is summed at once where rows of a can be read as they are stored: packed, their panel
  /// should stay in the caches, and what is strided along k should be read while it is there.
  struct Blocks {
    static constexpr int64_t kDeepInPlace = 2048, kDeep = 512;
    static constexpr int64_t kMostB = int64_t{1} << 18;  // words of a block of b
    static constexpr int64_t kMostA = int64_t{1} << 20;  // words of a that stay packed while several blocks of columns pass
    int64_t m, n, k;
    bool in_place;  // but a panel that is not whole
    int64_t deepest = in_place ? kDeepInPlace : kDeep;
    int64_t depth = smaller(k, deepest);
    int64_t cols = cols_of_block(n, steps(depth));
    bool keeps_a = !in_place && padded(m) * steps(depth) <= kMostA && cols < n;

    Blocks(int64_t m_, int64_t n_, int64_t k_, bool in_place_) : m(m_), n(n_), k(k_), in_place(in_place_) {}
    /// Of one size but the last, of whole panels.
    static int64_t cols_of_block(int64_t n, int64_t words) {
      const int64_t blocks = (n * words + kMostB / 2) / kMostB;
      return padded(panels(n, larger(blocks, 1)));
    }
    /// At most so many columns are in a block where there are up to n.
    static int64_t most_cols(int64_t n, int64_t words) {
      return words > 0 ? smaller(padded(n), padded(3 * kMostB / (2 * words) + 1)) : padded(n);
    }
    /// Whether there may be several blocks of columns.
    static bool may_keep_a(int64_t n, int64_t words) { return n * words >= 3 * kMostB / 2; }
    bool adds() const { return k > depth; }
    int64_t a_size() const { return (keeps_a ? padded(m) : kRowsOfPanel) * steps(depth); }
    int64_t b_size() const { return cols * steps(depth); }
  };

  /// The tiles are the thread's until they are released.
  class Tiles {
   public:
    Tiles() { configured_words = 0; }
    ~Tiles() { _tile_release(); }
    Tiles(const Tiles&) = delete;
    Tiles& operator=(const Tiles&) = delete;
  };
  static inline thread_local int64_t configured_words = 0;  // of a group for which they are configured; 0 before

  /// Columns in panels of 32, each [words, 32]. b is read along its rows: all of k at once where that lies in a row, else a few
  /// steps of k for all columns.
  static void pack_columns(const Bf16Matrix& b, int64_t cols, int64_t depth, float* to, int64_t words) {
    const int64_t at_once = b.inner == 1 ? depth : kDepthAtOnce;
    for (int64_t p = 0; p < depth; p += at_once)
      for (int64_t j = 0; j < cols; j += kColsOfPanel)
        PackedBf16::pack(b.from(j, p), smaller(kColsOfPanel, cols - j), smaller(at_once, depth - p),
                         to + j * words + steps(p) * kColsOfPanel, kColsOfPanel);
  }

  /// 32 rows of c or fewer, and the columns of a block.
  struct Panel {
    int64_t rows, cols, depth;
    const float* b;
    int64_t b_words;  // from column to column
    float* c;
    int64_t ldc;
    bool whole;  // whether c has room for 32 rows and all columns of the last panel of b
    bool add;
  };

  /// Up to 32 rows of a, and columns of b of which the first 32 are multiplied, over a block along k.
  struct Block {
    const float* a;
    int64_t a_bytes;  // from row to row
    const float* b;
    int64_t words, rows, cols;
  };

  static void multiply_panel(const Panel& x, const Bf16Matrix& a, bool may_read_a, float* packed_a, bool has_a) {
    constexpr int64_t most_depth = 384, usual_depth = 256;  // rows of a and columns of b fit the L1 cache
    const int64_t depth = x.depth <= most_depth ? x.depth : usual_depth;
    const bool in_place = may_read_a && x.rows % kSide == 0;
    for (int64_t p = 0; p < x.depth; p += depth) {
      const int64_t some = smaller(depth, x.depth - p), words = steps(some);
      float* const packed = packed_a + kRowsOfPanel * steps(p);
      if (!in_place && !has_a) pack_rows(a.from(0, p), x.rows, some, packed);
      for (int64_t j = 0; j < x.cols; j += kColsOfPanel)
        multiply({.a = in_place ? static_cast<const float*>(a.from(0, p).data.data) : packed,
                  .a_bytes = in_place ? 2 * a.outer : 4 * words,
                  .b = x.b + j * x.b_words + steps(p) * kColsOfPanel,
                  .words = words,
                  .rows = x.whole ? panels(x.rows, kSide) * kSide : x.rows,
                  .cols = x.whole ? panels(x.cols - j, kSide) * kSide : x.cols - j},
                 x.c + j, x.ldc, x.add || p > 0);
    }
    for (int64_t r = 0; r < x.rows && x.depth == 0 && !x.add; ++r)
      for (int64_t j = 0; j < x.cols; ++j) x.c[r * x.ldc + j] = 0;
  }

  /// Rows of a, two numbers along k in a word.
  static void pack_rows(const Bf16Matrix& x, int64_t count, int64_t depth, float* to) {
    if (x.inner == 1)
      x.data.stored ? copy_rows<true>(x, count, depth, to) : copy_rows<false>(x, count, depth, to);
    else
      x.data.stored ? transpose_rows<true>(x, count, depth, to) : transpose_rows<false>(x, count, depth, to);
  }

  template <bool STORED>
  static void copy_rows(const Bf16Matrix& x, int64_t count, int64_t depth, float* to) {
    const int64_t words = steps(depth);
    for (int64_t o = 0; o < count; ++o, to += words) {
      const void* const row = x.from(o, 0).data.data;
      __builtin_prefetch(x.from(o + 2, 0).data.data);
      for (int64_t p = 0; p < depth; p += 32)
        _mm512_mask_storeu_epi32(to + p / 2, first_lanes(smaller(kSide, words - p / 2)).v, pairs<STORED>(row, p, depth - p));
    }
  }

  /// Where k is strided: 32 steps of k of 16 rows, which are transposed from the L1 cache.
  template <bool STORED>
  static void transpose_rows(const Bf16Matrix& x, int64_t count, int64_t depth, float* to) {
    const int64_t words = steps(depth);
    alignas(64) float block[kSide][kSide];
    for (int64_t p = 0; p < depth; p += 2 * kSide) {
      const int64_t some = smaller(2 * kSide, depth - p);
      for (int64_t o = 0; o < count; o += kSide) {
        for (int64_t s = 0; s < some; s += 2) {
          const Bf16Matrix even = x.from(o, p + s), odd = x.from(o, p + s + 1);
          auto* const row = reinterpret_cast<Word*>(block[s / 2]);
          __builtin_prefetch(even.from(2 * kSide, 0).data.data);
          __builtin_prefetch(odd.from(2 * kSide, 0).data.data);
          if (s + 1 < some)
            write_two<STORED>(even.data.data, odd.data.data, smaller(kSide, count - o), row, kSide);
          else
            write_last<STORED>(even.data.data, smaller(kSide, count - o), row, kSide);
        }
        write_transposed(block, steps(some), smaller(kSide, count - o), to + o * words + p / 2, words);
      }
    }
  }

  /// to[o * words + s] = block[s][o] for o < count and s < depth.
  static void write_transposed(const float (&block)[kSide][kSide], int64_t depth, int64_t count, float* to, int64_t words) {
    if (depth == kSide && count == kSide) {
      const float* rows[kSide];
      for (int64_t s = 0; s < kSide; ++s) rows[s] = block[s];
      transpose(rows, to, words);
    } else {
      for (int64_t o = 0; o < count; ++o)
        for (int64_t s = 0; s < depth; ++s)
          reinterpret_cast<Word*>(to)[o * words + s] = reinterpret_cast<const Word*>(block[s])[o];
    }
  }

  /// Whole groups, then what is left of one.
  static void multiply(const Block& x, float* c, int64_t ldc, bool add) {
    const int64_t whole = x.words / kSide * kSide;
    if (whole > 0) multiply_groups(x, 0, whole, c, ldc, add);
    if (whole < x.words) multiply_groups(x, whole, x.words, c, ldc, add || whole > 0);
  }

  /// Groups of `words` words from now on.
  static void have_words(int64_t words) {
    if (configured_words == words) return;
    configured_words = words;
    const auto a_bytes = static_cast<uint16_t>(4 * words);
    const auto b_rows = static_cast<uint8_t>(words);
    load(TileConfig{.row_bytes = {64, 64, 64, 64, a_bytes, a_bytes, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, b_rows, b_rows}});
  }

  /// Where a tile of sums is: in c, or, if c ends within it, in a copy.
  struct Place {
    float* data;
    int64_t bytes;
  };

  static void multiply_groups(const Block& x, int64_t first, int64_t end, float* c, int64_t ldc, bool add) {
    have_words(smaller(kSide, end - first));
    alignas(64) float copies[4][kSide * kSide];
    Place sums[4];
    const bool low = x.rows > kSide, right = x.cols > kSide;
    const auto copy = [&](int64_t i, auto move) {  // move(one of c, its copy)
      const int64_t row = i / 2 * kSide, col = i % 2 * kSide;
      for (int64_t r = row; r < smaller(row + kSide, x.rows); ++r)
        for (int64_t j = col; j < smaller(col + kSide, x.cols); ++j)
          move(c[r * ldc + j], copies[i][(r - row) * kSide + j - col]);
    };
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t row = i / 2 * kSide, col = i % 2 * kSide;
      sums[i] = {c + row * ldc + col, 4 * ldc};
      if (row + kSide <= x.rows && col + kSide <= x.cols) continue;
      sums[i] = {copies[i], 4 * kSide};
      if (add) copy(i, [](float& of_c, float& of_copy) { of_copy = of_c; });
    }
    asm volatile("" : : : "memory");  // GCC does not know what a tile is loaded from
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (add) {
      _tile_loadd(0, sums[0].data, sums[0].bytes);
      if (right) _tile_loadd(1, sums[1].data, sums[1].bytes);
      if (low) _tile_loadd(2, sums[2].data, sums[2].bytes);
      if (low && right) _tile_loadd(3, sums[3].data, sums[3].bytes);
    }
    constexpr int64_t b_bytes = 4 * kColsOfPanel;
    const float *a = x.a + first, *lower_a = a + kSide * x.a_bytes / 4, *b = x.b + first * kColsOfPanel;
    for (int64_t w = first; w < end; w += kSide, a += kSide, lower_a += kSide, b += kSide * kColsOfPanel) {
      _tile_loadd(4, a, x.a_bytes);
      _tile_loadd(6, b, b_bytes);
      _tile_dpbf16ps(0, 4, 6);
      if (right) {
        _tile_loadd(7, b + kSide, b_bytes);
        _tile_dpbf16ps(1, 4, 7);
      }
      if (!low) continue;
      _tile_loadd(5, lower_a, x.a_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if (right) _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums[0].data, sums[0].bytes);
    if (right) _tile_stored(1, sums[1].data, sums[1].bytes);
    if (low) _tile_stored(2, sums[2].data, sums[2].bytes);
    if (low && right) _tile_stored(3, sums[3].data, sums[3].bytes);
    for (int64_t i = 0; i < 4; ++i)
      if (sums[i].data == copies[i]) copy(i, [](float& of_c, float& of_copy) { of_c = of_copy; });
  }
};

}  // namespace
}  // namespace onestep::kernels
