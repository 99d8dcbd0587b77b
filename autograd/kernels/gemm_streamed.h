#pragma once
// A few rows of a [m, k] times b [k, n] whose rows are long and come from memory: b is read in the order in which it lies,
// eight rows at once, and what is summed stays in a cache. A microkernel walks down some columns, which no prefetcher follows,
// and gets a fifth to a half of the memory's bandwidth.
#include "autograd/kernels/gemm_blocks.h"
#include "autograd/kernels/gemm_few_rows.h"

namespace onestep::kernels {
namespace {

inline bool takes_streams(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kLongRow = 512;  // shorter ones are as fast by columns
  return m <= kFewRows && n >= kLongRow && n * k > kInL2;
}

/// sums[0:cols] += a[0:DEPTH] b[0:DEPTH, 0:cols], where `sums` has room for whole registers.
template <int DEPTH>
[[gnu::noinline]] void add_rows_of_b(const Operand<float>& a, const float* b, int64_t ldb, float* sums, int64_t cols) {
  FloatReg scalars[DEPTH];
#pragma GCC unroll 8
  for (int i = 0; i < DEPTH; ++i) scalars[i] = splat_reg(a.data[i * a.inner]);
  const auto add = [&](int64_t j, auto load) {
    FloatReg sum = load_reg(sums + j);
#pragma GCC unroll 8
    for (int i = 0; i < DEPTH; ++i) sum = fma(scalars[i], load(b + i * ldb + j), sum);
    store_reg(sums + j, sum);
  };
  int64_t j = 0;
  for (; j + kFloatLanes <= cols; j += kFloatLanes) add(j, [](const float* from) { return load_reg(from); });
  if (j < cols) add(j, [=](const float* from) { return load_reg_first(from, cols - j); });
}

/// Columns [j, j + cols) of the products along [p, end), added to c but for the first.
inline void multiply_block(int64_t m, const FewRows& x, int64_t p, int64_t end, int64_t j, int64_t cols, float* sums) {
  constexpr int kDepth = 8;
  const int64_t width = padded<float>(cols);
  const bool add = x.accumulate || p > 0;
  for (int64_t i = 0; i < m * width; i += kFloatLanes) store_reg(sums + i, splat_reg(0.0f));
  for (; p < end; p += end - p < kDepth ? 1 : kDepth)
    for (int64_t r = 0; r < m; ++r)
      (end - p < kDepth ? add_rows_of_b<1> : add_rows_of_b<kDepth>)(x.a.from(r, p), x.b + p * x.ldb + j, x.ldb,
                                                                    sums + r * width, cols);
  for (int64_t r = 0; r < m; ++r) {
    float* const to = x.c + r * x.ldc + j;
    for (int64_t i = 0; i < cols; ++i) to[i] = add ? to[i] + sums[r * width + i] : sums[r * width + i];
  }
}

/// c [m, n] = or += op(a) b, with a workspace of kPackedA numbers.
inline void multiply_streamed(int64_t m, const FewRows& x, float* workspace) {
  constexpr int64_t kMost = 512;  // columns: several rows of a use eight rows of b while they are in the L1 cache
  static_assert(kFewRows * kMost <= kPackedA || !kReadsInOrder);
  const int64_t parts = panels(x.n, m == 1 ? kPackedA : kMost), cols = padded<float>(panels(x.n, parts));
  for (int64_t p = 0; p < x.k; p += kBlockK)
    for (int64_t j = 0; j < x.n; j += cols)
      multiply_block(m, x, p, smaller(x.k, p + kBlockK), j, smaller(cols, x.n - j), workspace);
}

}  // namespace
}  // namespace onestep::kernels
