#pragma once
// a [m, k] times the transpose of b [n, k] for few rows of a, as when a model generates token by token: every element of b is
// needed only m times, so the product should take no longer than reading b. Packing b would write it and read it again.
#include "autograd/kernels/gemm_pack.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {
namespace {

inline constexpr int64_t kMostDirectRows = 8;

/// block[s * kRegLanes + o] = rows[o][p + s] for s < depth <= 8.
ONESTEP_INLINE void take_block(const float* const (&rows)[kRegLanes], int64_t p, int64_t depth, float* block) {
  if (depth == 8) {
    for (int64_t o = 0; o < kRegLanes; o += 8) {
      const float* eight[8];
      for (int64_t i = 0; i < 8; ++i) eight[i] = rows[o + i] + p;
      transpose(eight, block + o, kRegLanes);
    }
  } else {
    for (int64_t s = 0; s < depth; ++s) {
      for (int64_t o = 0; o < kRegLanes; ++o) block[s * kRegLanes + o] = rows[o][p + s];
    }
  }
}

/// One register of columns of c for ROWS rows, over all of k. The rows of b pass through a block of 8 steps of k that stays in
/// the L1 cache. Those of the next columns, `ahead` floats on, are asked for meanwhile: a row is too short for the hardware to
/// foresee them. Not inline: among all of gemm GCC would keep its pointers in memory.
template <int ROWS>
[[gnu::noinline]] void few_rows_tile(int64_t k, Operand a, const float* const (&rows)[kRegLanes], int64_t ahead, float* c,
                                     int64_t ldc, int64_t cols, bool accumulate) {
  alignas(64) float block[8 * kRegLanes];
  for (int64_t p0 = 0; p0 < k; p0 += kBlockK) {
    Reg total[ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r) total[r] = splat_reg(0.0f);
    const int64_t end = k - p0 < kBlockK ? k : p0 + kBlockK;
    for (int64_t p = p0, depth; p < end; p += depth) {
      depth = end - p < 8 ? end - p : 8;
      if (p % 16 == 0) {  // a cache line of each
        for (const float* row : rows) __builtin_prefetch(row + p + ahead);
      }
      take_block(rows, p, depth, block);
      for (int64_t s = 0; s < depth; ++s) {
        const Reg column = load_reg(block + s * kRegLanes);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) total[r] = fma(splat_reg(a.data[r * a.outer + (p + s) * a.inner]), column, total[r]);
      }
    }
    const bool add = accumulate || p0 > 0;
    for (int r = 0; r < ROWS; ++r) {
      float* const to = c + r * ldc;
      if (cols == kRegLanes) {
        store_reg(to, add ? load_reg(to) + total[r] : total[r]);
      } else {
        store_reg_first(to, add ? load_reg_first(to, cols) + total[r] : total[r], cols);
      }
    }
  }
}

/// c [m, n] = or += op(a) b^T for 1 <= m <= ROWS.
template <int ROWS = static_cast<int>(kMostDirectRows)>
void few_rows(int64_t m, int64_t n, int64_t k, Operand a, const float* b, int64_t ldb, float* c, int64_t ldc, bool accumulate) {
  if constexpr (ROWS > 1) {
    if (m < ROWS) return few_rows<ROWS - 1>(m, n, k, a, b, ldb, c, ldc, accumulate);
  }
  for (int64_t j = 0; j < n; j += kRegLanes) {
    const int64_t cols = n - j < kRegLanes ? n - j : kRegLanes;
    const float* rows[kRegLanes];
    for (int64_t o = 0; o < kRegLanes; ++o) rows[o] = b + (j + (o < cols ? o : 0)) * ldb;
    few_rows_tile<ROWS>(k, a, rows, kRegLanes * ldb, c + j, ldc, cols, accumulate);
  }
}

}  // namespace
}  // namespace onestep::kernels
