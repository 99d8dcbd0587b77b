#pragma once
// a [m, k] times the transpose of b [n, k] for few rows of a, as when a model generates token by token: every element of b is
// needed only m times, so the product should take no longer than reading b. Packing b would write it and read it again.
#include "autograd/kernels/gemm_blocks.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {
namespace {

/// Whether products of few rows read b in the order in which it lies (gemm_rows_in_lanes.h, gemm_streamed.h). With AVX-512 that
/// is not measured, and it is more code than the web page has room for.
#if defined(ONESTEP_ISA_avx2)
inline constexpr bool kReadsInOrder = true;
#else
inline constexpr bool kReadsInOrder = false;
#endif

inline constexpr int64_t kFloatLanes = kRegLanes<float>;
inline constexpr int64_t kMostDirectRows = kReadsInOrder ? 4 : kFloatLanes == 16 ? 12 : 8;

/// Side of the tiles that are transposed. One of 16 x 16 takes all registers, and in place would push sums into memory.
#if defined(ONESTEP_ISA_avx512)
inline constexpr int kTile = 16;
#define ONESTEP_TILES [[gnu::noinline]] inline
#else
inline constexpr int kTile = 8;
#define ONESTEP_TILES ONESTEP_INLINE
#endif

/// block[s * kFloatLanes + o] = rows[o][p + s] for s < depth <= kTile.
ONESTEP_TILES void transpose_block(const float* const (&rows)[kFloatLanes], int64_t p, int64_t depth, float* block) {
  if (depth == kTile) {
    for (int64_t o = 0; o < kFloatLanes; o += kTile) {
      const float* some[kTile];
      for (int64_t i = 0; i < kTile; ++i) some[i] = rows[o + i] + p;
      transpose(some, block + o, kFloatLanes);
    }
  } else {
    for (int64_t s = 0; s < depth; ++s) {
      for (int64_t o = 0; o < kFloatLanes; ++o) block[s * kFloatLanes + o] = rows[o][p + s];
    }
  }
}

/// Prefetches the cache line of each row that is 6 lines after p, the start of a line where rows are aligned. Into the L2 cache
/// alone where there are two registers of rows: their lines would push each other out of few L1 sets before they are read.
template <int REGS, int ROWS>
ONESTEP_INLINE void prefetch_rows(const float* const (&rows)[ROWS], int64_t p) {
  constexpr int64_t kLine = 16, kAhead = 6 * kLine;
  if (p % kLine != 0) return;
  for (const float* const row : rows) __builtin_prefetch(row + p + kAhead, 0, REGS == 1 ? 3 : 2);
}

/// Rows of b, one a lane.
struct RowsOfB {
  const float* rows[kFloatLanes];
};

/// The microkernel: sum[r][v] = or += row r of op(a) times the transposes of the rows of b in b[v], over all of k, which pass
/// through blocks of kTile steps of k that stay in the L1 cache. Not inline: among all of gemm GCC would keep its pointers in
/// memory.
template <int ROWS, int REGS>
[[gnu::noinline]] void few_rows_microkernel(int64_t k, Operand<float> a, const RowsOfB (&b)[REGS], FloatReg (&sum)[ROWS][REGS],
                                            bool accumulate, bool prefetch) {
  alignas(64) float block[REGS][kTile * kFloatLanes];
  for (int64_t p0 = 0; p0 < k; p0 += kBlockK) {
    FloatReg total[ROWS][REGS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < REGS; ++v) total[r][v] = splat_reg(0.0f);
    const auto step = [&](int64_t p, int64_t s) {
      FloatReg column[REGS];
      for (int v = 0; v < REGS; ++v) column[v] = load_reg(block[v] + s * kFloatLanes);
#pragma GCC unroll 16
      for (int r = 0; r < ROWS; ++r) {
        const FloatReg scalar = splat_reg(a.data[r * a.outer + (p + s) * a.inner]);
        for (int v = 0; v < REGS; ++v) total[r][v] = fma(scalar, column[v], total[r][v]);
      }
    };
    const int64_t end = k - p0 < kBlockK ? k : p0 + kBlockK;
    int64_t p = p0;
#if defined(ONESTEP_ISA_avx512)
    if constexpr (ROWS <= 2 && REGS == 1) {  // columns are multiplied as they come: as many registers are left
      for (; p + kTile <= end; p += kTile) {
        if (prefetch) prefetch_rows<REGS>(b[0].rows, p);
        for_each_column(b[0].rows, p, [&](int64_t s, Vec column) {
#pragma GCC unroll 2
          for (int r = 0; r < ROWS; ++r)
            total[r][0] = fma(splat_reg(a.data[r * a.outer + (p + s) * a.inner]), column, total[r][0]);
        });
      }
    }
#endif
    for (; p + kTile <= end; p += kTile) {
      for (int v = 0; v < REGS; ++v) {
        if (prefetch) prefetch_rows<REGS>(b[v].rows, p);
        transpose_block(b[v].rows, p, kTile, block[v]);
      }
      for (int64_t s = 0; s < kTile; ++s) step(p, s);
    }
    for (int v = 0; p < end && v < REGS; ++v) transpose_block(b[v].rows, p, end - p, block[v]);
    for (int64_t s = 0; s < end - p; ++s) step(p, s);
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < REGS; ++v) sum[r][v] = accumulate || p0 > 0 ? sum[r][v] + total[r][v] : total[r][v];
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

/// A product of few rows of op(a) with the transpose of b [n, k], or with b [k, n] (gemm_streamed.h).
struct FewRows {
  int64_t n, k;
  Operand<float> a;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
  bool accumulate;
};

#if defined(ONESTEP_ISA_avx2)
inline constexpr bool kInRegisters = true;
/// Since some time, about.
ONESTEP_INLINE int64_t cycles() { return static_cast<int64_t>(__rdtsc()); }

/// few_rows_microkernel of one row without blocks: columns are multiplied as they leave the registers that transpose. The rows
/// of b are those from b on and from b + x.ldb on, a lane `apart` elements from the one before.
[[gnu::noinline]] inline void one_row_microkernel(const FewRows& x, const float* b, int64_t apart, FloatReg (&sum)[1][2]) {
  for (int64_t p0 = 0; p0 < x.k; p0 += kBlockK) {
    FloatReg total[2] = {splat_reg(0.0f), splat_reg(0.0f)};
    EightRows rows[2] = {{b + p0, apart}, {b + x.ldb + p0, apart}};
    const float* a = x.a.data + p0;
    for (int64_t left = (x.k - p0 < kBlockK ? x.k - p0 : kBlockK) / kTile; left > 0; --left, a += kTile) {
#pragma GCC unroll 2
      for (int p = 0; p < kTile; p += 4) {
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          for_four_columns(rows[v], p, [&](int i, FloatReg column) { total[v] = fma(splat_reg(a[i]), column, total[v]); });
          finish(total[v]);  // else GCC runs out of registers
        }
      }
      for (EightRows& eight : rows) eight.advance(kTile);
    }
    for (int v = 0; v < 2; ++v) sum[0][v] = x.accumulate || p0 > 0 ? sum[0][v] + total[v] : total[v];
  }
}
#else
inline constexpr bool kInRegisters = false;
ONESTEP_INLINE int64_t cycles() { return 0; }
#endif

/// Whether one_row_microkernel did it.
template <int ROWS, int REGS>
ONESTEP_INLINE bool multiplied_in_registers(const FewRows& x, const float* b, int64_t apart, FloatReg (&sum)[ROWS][REGS]) {
  if constexpr (kInRegisters && ROWS == 1 && REGS == 2) {
    if (x.a.inner != 1 || x.k % kTile != 0) return false;
    one_row_microkernel(x, b, apart, sum);
    return true;
  }
  return false;
}

/// Column l * apart + j of c in lane l, REGS of them from j on, of which those below `apart` are there.
template <int ROWS, int REGS>
ONESTEP_INLINE void multiply_columns(const FewRows& x, int64_t apart, int64_t j) {
  RowsOfB b[REGS];
  int64_t cols[REGS] = {};
  for (int v = 0; v < REGS; ++v) {
    for (int64_t o = 0, column = j + v; o < kFloatLanes; ++o, column += apart) {
      const bool there = j + v < apart && column < x.n;
      cols[v] += there;
      b[v].rows[o] = x.b + (there ? column : j) * x.ldb;
    }
  }
  float* const to = x.c + j;
  FloatReg sum[ROWS][REGS];
  for (int r = 0; x.accumulate && r < ROWS; ++r)
    for (int v = 0; v < REGS; ++v) sum[r][v] = load_apart(to + r * x.ldc + v, apart, cols[v]);
  if (!(cols[REGS - 1] == kFloatLanes && multiplied_in_registers(x, x.b + j * x.ldb, apart * x.ldb, sum)))
    few_rows_microkernel<ROWS, REGS>(x.k, x.a, b, sum, x.accumulate, x.n * x.k > kInL2);
  for (int r = 0; r < ROWS; ++r)
    for (int v = 0; v < REGS; ++v) store_apart(to + r * x.ldc + v, apart, sum[r][v], cols[v]);
}

/// All of them.
template <int ROWS, int REGS>
void multiply_lanes(const FewRows& x, int64_t apart) {
  for (int64_t j = 0; j < apart; j += REGS) multiply_columns<ROWS, REGS>(x, apart, j);
}

/// Columns between the streams of b.
inline constexpr int64_t kManyColumns = 16;
template <int STREAMS>
int64_t columns_apart(const FewRows& x) {
  const int64_t apart = (x.n + STREAMS - 1) / STREAMS;
  constexpr int64_t kAliasing = 1024;  // rows a multiple of 4 KiB apart alias the same L1 sets
  return apart + (apart >= kManyColumns && apart * x.ldb % kAliasing < kAliasing / 4);
}

/// One row from memory, or from a cache: 16 streams for some columns, then as many as are faster. Eight streams make one sum of
/// 8 lanes, which takes an fma in 4 cycles: 8 bytes a cycle. No bit depends on it.
template <int ROWS>
void multiply_row_by_trial(const FewRows& x, int64_t apart) {
  constexpr int64_t kToBegin = 2, kTried = 4;
  bool faster = true;
  int64_t began = 0;
  for (int64_t j = 0; j < apart;) {
    if (j == kToBegin) began = cycles();
    if (j == kToBegin + kTried)
      faster = (cycles() - began) * 8 < kTried * kFloatLanes * x.k * static_cast<int64_t>(sizeof(float));
    faster ? multiply_columns<ROWS, 2>(x, apart, j) : multiply_columns<ROWS, 1>(x, apart, j);
    j += faster ? 2 : 1;
  }
}

/// c [m, n] = or += op(a) b^T for 1 <= m <= ROWS. Lane l holds column j + l * apart of c:
///
///   column of c:  0 1 2 3 ...      | apart ...        | 2 apart ...      |
///   tile j = 0:   lane 0            lane 1             lane 2
///   tile j = 1:     lane 0            lane 1             lane 2
///
/// So each lane reads its rows of b one after the other, a stream that the hardware prefetcher detects, and several streams get
/// more of the memory's bandwidth than one. Eight streams get more than 16 where b is not near.
template <int ROWS = static_cast<int>(kMostDirectRows)>
void few_rows(int64_t m, const FewRows& x) {
  if constexpr (ROWS > 1) {
    if (m < ROWS) return few_rows<ROWS - 1>(m, x);
  }
  const int64_t apart = columns_apart<kFloatLanes>(x);
  // A single row has too few independent accumulators of 8 lanes where b is near; where it is not, eight streams bring more
  // than 16. Of 16 lanes two columns together make many rows faster, and few slower.
  constexpr int kAtOnce = (kFloatLanes < 16 ? ROWS <= 2 : ROWS >= 6) ? 2 : 1;
  if constexpr (kInRegisters && ROWS == 1) {
    if (x.n * x.k > kInL2 && apart >= kManyColumns) return multiply_row_by_trial<ROWS>(x, apart);
  }
  if (apart == 1 || x.n * x.k > kInL2) return multiply_lanes<ROWS, 1>(x, apart);
  multiply_lanes<ROWS, kAtOnce>(x, apart);
}

}  // namespace
}  // namespace onestep::kernels
