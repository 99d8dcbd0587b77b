#pragma once
// Products of numbers rounded to bfloat16 with the bits of TDPBF16PS, the instruction of AMX: along k, groups of 32 numbers; of
// each the sums of its even and of its odd products, both from zero by fma in ascending order; these are added, and the sum is
// added to c. What is subnormal is a zero of its sign, before and after.
#include "autograd/kernels/gemm_bf16_pack.h"
#include "autograd/kernels/isa.h"
#if defined(ONESTEP_TILES)
#include "autograd/kernels/tile_config.h"
#endif

namespace onestep::kernels {
namespace {

#if !defined(ONESTEP_TILES)

/// By two fma, with two accumulators for a number of c; in generic for either order of sums, as less code.
struct TiledBf16 : PackedBf16 {
  static constexpr bool kMultipliesTiles = true;

  static void multiply_tile(int64_t rows, int64_t regs, int64_t steps, const kernels::Operand<float>& a,
                            const MicropanelB<float>& b, float* c, int64_t ldc, int64_t cols, bool add) {
    for_rows<kMostRows, kRegs>(regs, Tile{steps, a.data, b, c, ldc, cols, add}, 0, rows);
  }

 private:
  static constexpr int kMostRows = kRows > 1 ? kRows / 2 : 1;

  struct Tile {
    int64_t steps;
    const float* a;
    MicropanelB<float> b;
    float* c;
    int64_t ldc, cols;
    bool add;
  };

  /// Rows [row, end), ROWS at a time, of a tile of REGS registers of columns or fewer.
  template <int ROWS, int REGS>
  static void for_rows(int64_t regs, const Tile& tile, int64_t row, int64_t end) {
    if constexpr (REGS > 1) {
      if (regs < REGS) return for_rows<ROWS, REGS - 1>(regs, tile, row, end);
    }
    for (; row + ROWS <= end; row += ROWS) multiply_rows<ROWS, REGS>(tile, row);
    if constexpr (ROWS > 1) {
      if (row < end) for_rows<ROWS - 1, REGS>(regs, tile, row, end);
    }
  }

  template <int ROWS, int REGS>
  [[gnu::noinline]] static void multiply_rows(const Tile& tile, int64_t first_row) {
    const float *a = tile.a + first_row, *b = tile.b.data;
    const int64_t last = tile.cols - (REGS - 1) * kRegLanes<float>, group = in_tiles() ? 32 : kBlockK;
    for (int64_t p = 0; p < tile.steps; p += group) {
      FloatReg odd[ROWS][REGS], even[ROWS][REGS];
      for (int r = 0; r < ROWS; ++r)
        for (int v = 0; v < REGS; ++v) odd[r][v] = even[r][v] = splat_reg(0.0f);
      const auto step = [&](FloatReg(&sum)[ROWS][REGS]) {
        FloatReg row[REGS];
        for (int v = 0; v < REGS; ++v) row[v] = load_reg(b + v * kRegLanes<float>);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; ++r) {
          const FloatReg scalar = splat_reg(a[r]);
          Doubt doubt;
          for (int v = 0; v < REGS; ++v) sum[r][v] = multiply_add(scalar, row[v], sum[r][v], doubt);
        }
        a += kPackedRows;
        b += tile.b.step;
      };
      const int64_t end = smaller(group, tile.steps - p);
      for (int64_t s = 0; s < end; s += 2) {
        step(in_tiles() ? odd : even);
        step(even);
      }
      for (int r = 0; r < ROWS; ++r)
        for (int v = 0; v < REGS; ++v) {
          float* const to = tile.c + (first_row + r) * tile.ldc + v * kRegLanes<float>;
          const int64_t lanes = v == REGS - 1 ? last : kRegLanes<float>;
          const bool adds = p > 0 || tile.add;
          const FloatReg sum = in_tiles() ? PackedBf16::add(even[r][v], odd[r][v]) : even[r][v],
                         before = adds ? load_reg_upto(to, lanes) : splat_reg(0.0f);
          store_reg_upto(to, adds || in_tiles() ? PackedBf16::add(before, sum) : sum, lanes);
        }
    }
  }

#if defined(ONESTEP_ISA_generic)
  static bool in_tiles() { return bf16_in_tiles(); }
#else
  static constexpr bool in_tiles() { return true; }
#endif
  ONESTEP_INLINE static FloatReg load_reg_upto(const float* from, int64_t lanes) {
    return lanes < kRegLanes<float> ? load_reg_first(from, lanes) : load_reg(from);
  }
  ONESTEP_INLINE static void store_reg_upto(float* to, FloatReg x, int64_t lanes) {
    lanes < kRegLanes<float> ? store_reg_first(to, x, lanes) : store_reg(to, x);
  }
};

#else

/// By AMX itself: tiles 0 to 3 are 32 x 32 numbers of c, 4 and 5 rows of a, 6 and 7 columns of b.
struct TiledBf16 : PackedBf16 {
  static constexpr bool kMultipliesTiles = true;
  static constexpr int64_t kSide = 16;  // rows of a tile; words of a row

  /// The modes of the CPU are nothing to AMX.
  class Scope {
   public:
    Scope() { configured = 0; }
    ~Scope() { _tile_release(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

  /// Row by row, two numbers along k in a word.
  static void pack_tile(const Bf16Matrix& x, int64_t count, int64_t depth, float* to) {
    if (x.inner == 1)
      x.data.stored ? pack_rows<true>(x, count, depth, to) : pack_rows<false>(x, count, depth, to);
    else
      x.data.stored ? transpose_rows<true>(x, count, depth, to) : transpose_rows<false>(x, count, depth, to);
  }

  static void multiply_tile(int64_t rows, int64_t /*regs*/, int64_t words, const kernels::Operand<float>& a,
                            const MicropanelB<float>& b, float* c, int64_t ldc, int64_t cols, bool add) {
    const int64_t whole = words / kSide * kSide;
    const auto multiply = [&](int64_t first, int64_t end, bool add_to_c) {
      have_words(smaller(kSide, end - first));
      multiply_groups({.a = a.data + first,
                       .b = b.data + first * b.step,
                       .a_bytes = 4 * words,
                       .b_bytes = 4 * b.step,
                       .words = end - first,
                       .rows = rows,
                       .cols = cols},
                      c, ldc, add_to_c);
    };
    if (whole > 0) multiply(0, whole, add);
    if (whole < words) multiply(whole, words, add || whole > 0);
  }

 private:
  template <bool STORED>
  static void pack_rows(const Bf16Matrix& x, int64_t count, int64_t depth, float* to) {
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

  static inline thread_local int64_t configured = 0;  // words of a group, or 0

  /// Groups of `words` words from now on.
  static void have_words(int64_t words) {
    if (configured == words) return;
    configured = words;
    const auto a_bytes = static_cast<uint16_t>(4 * words);
    const auto b_rows = static_cast<uint8_t>(words);
    load(TileConfig{.row_bytes = {64, 64, 64, 64, a_bytes, a_bytes, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, b_rows, b_rows}});
  }

  /// Rows of a and columns of b, which are up to 32.
  struct Groups {
    const float *a, *b;
    int64_t a_bytes, b_bytes, words, rows, cols;  // from row to row
  };

  /// Where a tile of sums is: in c, or, if c ends within it, in a copy.
  struct Place {
    float* data;
    int64_t bytes;
  };

  static void multiply_groups(const Groups& x, float* c, int64_t ldc, bool add) {
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
    const float *a = x.a, *b = x.b, *lower_a = x.a + kSide * x.a_bytes / 4;
    for (int64_t w = 0; w < x.words; w += kSide, a += kSide, lower_a += kSide, b += kSide * x.b_bytes / 4) {
      _tile_loadd(4, a, x.a_bytes);
      _tile_loadd(6, b, x.b_bytes);
      _tile_dpbf16ps(0, 4, 6);
      if (right) {
        _tile_loadd(7, b + kSide, x.b_bytes);
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

#endif

}  // namespace
}  // namespace onestep::kernels
