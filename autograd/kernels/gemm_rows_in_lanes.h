#pragma once
// a [m, k] times the transpose of b [n, k] for up to 32 rows of a: the rows are in the lanes, and each number of b, as it is
// stored, is multiplied by all of them. So only a is transposed, and b is read once, neither transposed (gemm_few_rows.h) nor
// packed.
#include "autograd/kernels/gemm_blocks.h"
#include "autograd/kernels/gemm_few_rows.h"

namespace onestep::kernels {
namespace {

/// Whether that is faster than to pack b, for more than kMostDirectRows rows: packing costs most where b comes from memory.
inline bool takes_rows_in_lanes(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kMost = 32;
  return m <= kFloatLanes || (m <= kMost && n * k > kInL2);
}

/// Columns that are summed at once: enough independent accumulators, and not too many streams of b.
template <int REGS>
inline constexpr int kColumnsAtOnce = REGS == 1 ? 8 : 6;

/// The microkernel: sum[j][v] = or += the products of the rows of op(a) in register v with row j of b, over all of k. A step
/// along k of a has REGS registers. Not inline: see gemm_few_rows.h.
template <int REGS, int COLS>
[[gnu::noinline]] void rows_in_lanes_microkernel(int64_t k, const float* a, const float* const (&b)[COLS],
                                                 FloatReg (&sum)[COLS][REGS], bool accumulate, bool prefetch) {
  constexpr int64_t kLine = 16;
  for (int64_t p0 = 0; p0 < k; p0 += kBlockK) {
    FloatReg total[COLS][REGS];
#pragma GCC unroll 8
    for (int j = 0; j < COLS; ++j)
      for (int v = 0; v < REGS; ++v) total[j][v] = splat_reg(0.0f);
    const auto step = [&](int64_t p) {
      FloatReg rows[REGS];
      for (int v = 0; v < REGS; ++v) rows[v] = load_reg(a + (p * REGS + v) * kFloatLanes);
#pragma GCC unroll 8
      for (int j = 0; j < COLS; ++j) {
        const FloatReg scalar = splat_reg(b[j][p]);
        for (int v = 0; v < REGS; ++v) total[j][v] = fma(rows[v], scalar, total[j][v]);
      }
    };
    const int64_t end = smaller(k, p0 + kBlockK);
    int64_t p = p0;
    for (; p + kLine <= end; p += kLine) {
      if (prefetch) prefetch_rows<1>(b, p);
#pragma GCC unroll 16
      for (int64_t s = 0; s < kLine; ++s) step(p + s);
    }
    for (; p < end; ++p) step(p);
#pragma GCC unroll 8
    for (int j = 0; j < COLS; ++j)
      for (int v = 0; v < REGS; ++v) sum[j][v] = accumulate || p0 > 0 ? sum[j][v] + total[j][v] : total[j][v];
  }
}

/// Rows [0, m) of columns j, j + apart, ... of c, with the rows of op(a) packed.
template <int REGS>
void multiply_columns_of_rows(int64_t m, const FewRows& x, const float* a, int64_t apart, int64_t j, bool prefetch) {
  constexpr int kCols = kColumnsAtOnce<REGS>;
  const auto rows_of = [m](int v) { return m > v * kFloatLanes ? smaller(m - v * kFloatLanes, kFloatLanes) : 0; };
  const float* b[kCols];
  FloatReg sum[kCols][REGS];
  for (int i = 0; i < kCols; ++i) {
    const int64_t column = j + i * apart < x.n ? j + i * apart : j;
    b[i] = x.b + column * x.ldb;
    for (int v = 0; x.accumulate && v < REGS; ++v)
      sum[i][v] = load_apart(x.c + v * kFloatLanes * x.ldc + column, x.ldc, rows_of(v));
  }
  rows_in_lanes_microkernel<REGS, kCols>(x.k, a, b, sum, x.accumulate, prefetch);
  for (int i = 0; i < kCols && j + i * apart < x.n; ++i)
    for (int v = 0; v < REGS; ++v) store_apart(x.c + v * kFloatLanes * x.ldc + j + i * apart, x.ldc, sum[i][v], rows_of(v));
}

/// c [m, n] = or += op(a) b^T, REGS registers of rows at a time, for as much of k as `workspace`, of `room` numbers, holds of
/// a.
template <int REGS>
void multiply_rows(int64_t m, FewRows x, float* workspace, int64_t room) {
  constexpr int64_t kRowsAtOnce = REGS * kFloatLanes;
  const int64_t most = room / (panels(m, kRowsAtOnce) * kRowsAtOnce) / kBlockK * kBlockK;
  const int64_t apart = columns_apart<kColumnsAtOnce<REGS>>(x);
  const bool prefetch = x.n * x.k > kInL2;
  for (int64_t left = x.k; left > 0; left -= x.k) {
    x.k = smaller(left, most);
    for (int64_t r = 0; r < m; r += kRowsAtOnce)
      pack(x.a.from(r, 0), smaller(m - r, kRowsAtOnce), x.k, workspace + r * x.k, kRowsAtOnce);
    for (int64_t j = 0; j < apart; ++j) {
      FewRows rows = x;
      for (int64_t r = 0; r < m; r += kRowsAtOnce, rows.c += kRowsAtOnce * x.ldc)
        multiply_columns_of_rows<REGS>(smaller(m - r, kRowsAtOnce), rows, workspace + r * x.k, apart, j, prefetch && r == 0);
    }
    x.a = x.a.from(0, x.k);
    x.b += x.k;
    x.accumulate = true;
  }
}

/// The same for as few lanes as hold m rows.
inline void rows_in_lanes(int64_t m, const FewRows& x, float* workspace, int64_t room) {
  (m <= kFloatLanes ? multiply_rows<1> : multiply_rows<2>)(m, x, workspace, room);
}

}  // namespace
}  // namespace onestep::kernels
