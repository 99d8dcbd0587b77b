#pragma once
// a [m, k] times the transpose of b [n, k] for few rows of a, as when a model generates token by token: every element of b is
// needed only m times, so the product should take no longer than reading b. Packing b would write it and read it again.
#include "autograd/kernels/gemm_pack.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {
namespace {

inline constexpr int64_t kMostDirectRows = 8, kFloatLanes = kRegLanes<float>;

/// block[s * kFloatLanes + o] = rows[o][p + s] for s < depth <= 8.
ONESTEP_INLINE void transpose_block(const float* const (&rows)[kFloatLanes], int64_t p, int64_t depth, float* block) {
  if (depth == 8) {
    for (int64_t o = 0; o < kFloatLanes; o += 8) {
      const float* eight[8];
      for (int64_t i = 0; i < 8; ++i) eight[i] = rows[o + i] + p;
      transpose(eight, block + o, kFloatLanes);
    }
  } else {
    for (int64_t s = 0; s < depth; ++s) {
      for (int64_t o = 0; o < kFloatLanes; ++o) block[s * kFloatLanes + o] = rows[o][p + s];
    }
  }
}

/// Prefetches the cache line of each row that is 6 lines after p, the start of a line where rows are aligned.
ONESTEP_INLINE void prefetch_rows(const float* const (&rows)[kFloatLanes], int64_t p) {
  constexpr int64_t kLine = 16, kAhead = 6 * kLine;
  if (p % kLine != 0) return;
  for (const float* const row : rows) __builtin_prefetch(row + p + kAhead);
}

/// The microkernel: sum[r] = or += row r of op(a) times the transposes of kFloatLanes rows of b, over all of k, which pass
/// through a block of 8 steps of k that stays in the L1 cache. Not inline: among all of gemm GCC would keep its pointers in
/// memory.
template <int ROWS>
[[gnu::noinline]] void few_rows_microkernel(int64_t k, Operand<float> a, const float* const (&rows)[kFloatLanes],
                                            FloatReg (&sum)[ROWS], bool accumulate) {
  constexpr int64_t kSteps = 8;
  alignas(64) float block[kSteps * kFloatLanes];
  for (int64_t p0 = 0; p0 < k; p0 += kBlockK) {
    FloatReg total[ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r) total[r] = splat_reg(0.0f);
    const auto step = [&](int64_t p, int64_t s) {
      const FloatReg column = load_reg(block + s * kFloatLanes);
#pragma GCC unroll 8
      for (int r = 0; r < ROWS; ++r) total[r] = fma(splat_reg(a.data[r * a.outer + (p + s) * a.inner]), column, total[r]);
    };
    const int64_t end = k - p0 < kBlockK ? k : p0 + kBlockK;
    int64_t p = p0;
    for (; p + kSteps <= end; p += kSteps) {
      prefetch_rows(rows, p);
      transpose_block(rows, p, kSteps, block);
      for (int64_t s = 0; s < kSteps; ++s) step(p, s);
    }
    if (p < end) transpose_block(rows, p, end - p, block);
    for (int64_t s = 0; s < end - p; ++s) step(p, s);
    for (int r = 0; r < ROWS; ++r) sum[r] = accumulate || p0 > 0 ? sum[r] + total[r] : total[r];
  }
}

/// Lanes o < count are from[o * apart], the others 0.
ONESTEP_INLINE FloatReg load_apart(const float* from, int64_t apart, int64_t count) {
  if (apart == 1) return count == kFloatLanes ? load_reg(from) : load_reg_first(from, count);
  float lanes[kFloatLanes] = {};
  for (int64_t o = 0; o < count; ++o) lanes[o] = from[o * apart];
  return load_reg(lanes);
}
/// to[o * apart] = lane o of x for o < count.
ONESTEP_INLINE void store_apart(float* to, int64_t apart, FloatReg x, int64_t count) {
  if (apart == 1) return count == kFloatLanes ? store_reg(to, x) : store_reg_first(to, x, count);
  float lanes[kFloatLanes];
  store_reg(lanes, x);
  for (int64_t o = 0; o < count; ++o) to[o * apart] = lanes[o];
}

/// c [m, n] = or += op(a) b^T for 1 <= m <= ROWS. Lane l holds column j + l * apart of c:
///
///   column of c:  0 1 2 3 ...      | apart ...        | 2 apart ...      |
///   tile j = 0:   lane 0            lane 1             lane 2
///   tile j = 1:     lane 0            lane 1             lane 2
///
/// So each lane reads its rows of b one after the other, a stream that the hardware prefetcher detects, and several streams get
/// more of the memory's bandwidth than one.
template <int ROWS = static_cast<int>(kMostDirectRows)>
void few_rows(int64_t m, int64_t n, int64_t k, Operand<float> a, const float* b, int64_t ldb, float* c, int64_t ldc,
              bool accumulate) {
  if constexpr (ROWS > 1) {
    if (m < ROWS) return few_rows<ROWS - 1>(m, n, k, a, b, ldb, c, ldc, accumulate);
  }
  int64_t apart = (n + kFloatLanes - 1) / kFloatLanes;
  // Rows a multiple of 4 KiB apart alias the same L1 sets.
  constexpr int64_t kAliasing = 1024, kLeast = 16;
  if (apart >= kLeast && apart * ldb % kAliasing < kAliasing / 4) ++apart;
  for (int64_t j = 0; j < apart; ++j) {
    const float* rows[kFloatLanes];
    int64_t cols = 0;
    for (int64_t o = 0, column = j; o < kFloatLanes; ++o, column += apart) {
      cols += column < n;
      rows[o] = b + (column < n ? column : j) * ldb;
    }
    FloatReg sum[ROWS];
    for (int r = 0; accumulate && r < ROWS; ++r) sum[r] = load_apart(c + r * ldc + j, apart, cols);
    few_rows_microkernel<ROWS>(k, a, rows, sum, accumulate);
    for (int r = 0; r < ROWS; ++r) store_apart(c + r * ldc + j, apart, sum[r], cols);
  }
}

}  // namespace
}  // namespace onestep::kernels
