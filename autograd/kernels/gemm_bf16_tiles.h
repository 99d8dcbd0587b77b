#pragma once
// Products of numbers rounded to bfloat16 with the bits of TDPBF16PS, the instruction of AMX: along k, groups of 32 numbers; of
// each the sums of its even and of its odd products, both from zero by fma in ascending order; these are added, and the sum is
// added to c. What is subnormal is a zero of its sign, before and after.
#include "autograd/kernels/gemm_bf16_pack.h"
#include "autograd/kernels/isa.h"

namespace onestep::kernels {
namespace {

/// Without AMX: by two fma, with two accumulators for a number of c; in generic for either order of sums, as less code.
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

}  // namespace
}  // namespace onestep::kernels
