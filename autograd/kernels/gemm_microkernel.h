#pragma once
// The microkernel of matrix products of one kind of numbers (gemm_blocks.h): a tile of c, in registers over a block of k.
//
// Its inner step is an outer product: some numbers of a, each times some registers of b. It needs many
// independent accumulators, to hide the latency of an fma, and few non-FMA instructions: 4 x 24 takes 7 loads for 12 FMAs (6 x
// 16 takes 8, which shows where another program shares the core). It is unrolled kUnroll times.
#include "autograd/kernels/gemm_pack.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {
namespace {

#if defined(ONESTEP_ISA_avx512)
inline constexpr int kRows = 14, kRegs = 2, kMaxRegs = 4, kPanelTiles = 1, kUnroll = 4;  // of 32 registers 28 hold sums, 2 b
#elif defined(ONESTEP_ISA_avx2)
inline constexpr int kRows = 4, kRegs = 3, kMaxRegs = 8, kPanelTiles = 8,
                     kUnroll = 8;  // of 16 registers 12 hold sums, 3 b, 1 a
#elif defined(ONESTEP_ISA_wasm)
inline constexpr int kRows = 2, kRegs = 1, kMaxRegs = 2, kPanelTiles = 4, kUnroll = 1;  // of 16 registers 8 hold sums
#elif defined(ONESTEP_ISA_wasm_relaxed)
inline constexpr int kRows = 4, kRegs = 1, kMaxRegs = 4, kPanelTiles = 8, kUnroll = 4;  // of 16 registers 8 hold sums
#elif defined(ONESTEP_WASM)  // generic: products of bfloat16 alone
inline constexpr int kRows = 1, kRegs = 1, kMaxRegs = 1, kPanelTiles = 2, kUnroll = 1;
#else
inline constexpr int kRows = 4, kRegs = 1, kMaxRegs = 4, kPanelTiles = 2, kUnroll = 4;
#endif
#if defined(ONESTEP_WASM)
inline constexpr bool kPrefetches = false;  // what is computed for it would be left
#else
inline constexpr bool kPrefetches = true;
#endif
/// Registers of columns that a microkernel of few rows takes where it reads b in place.
constexpr int regs_for(int rows) { return kRows * kRegs / rows < kMaxRegs ? kRows * kRegs / rows : kMaxRegs; }

inline constexpr int64_t kPackedRows = kRows <= 4 ? 4 : 16;

/// Whether rows of a that are contiguous are copied as they are, kRowStride apart: an odd number of cache lines, so that they
/// lie in different sets of the L1 cache. Elsewhere they are transposed (with AVX2 copying loses as often as it gains).
#if defined(ONESTEP_ISA_avx512)
inline constexpr bool kCopiesRows = true;
#else
inline constexpr bool kCopiesRows = false;
#endif
inline constexpr int64_t kRowStride = kBlockK + 16;

/// Where a microkernel reads b, packed or in place: the columns of step p along k start at data + p * step.
template <class T>
struct MicropanelB {
  const T* data;
  int64_t step;
};

template <class K, int ROWS, int REGS, bool EDGE, class T>
[[gnu::noinline]] void careful_microkernel(int64_t depth, const Operand<T>& a, const MicropanelB<T>& b, T* c, int64_t ldc,
                                           int64_t cols, bool add);

/// c[r, 0:cols] = or += the sum over p < depth of a(r, p) b(p, 0:cols), for ROWS rows; REGS - 1 registers < cols <= REGS.
/// EDGE: columns of b from `cols` on are not there.
template <class K, int ROWS, int REGS, bool EDGE, class T>
ONESTEP_INLINE void microkernel(int64_t depth, Operand<T> a, MicropanelB<T> b, T* c, int64_t ldc, int64_t cols, bool add) {
  [[maybe_unused]] const Operand<T> all_of_a = a;
  [[maybe_unused]] const MicropanelB<T> all_of_b = b;
  Doubt doubt;
  Reg<T> total[ROWS][REGS];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < REGS; ++v) total[r][v] = splat_reg(T(0));
  }
  const int64_t last = cols - (REGS - 1) * kRegLanes<T>;
  const auto step = [&](const T* a_step, const T* b_step) {
    Reg<T> row[REGS];
#pragma GCC unroll 16
    for (int v = 0; v < REGS; ++v) {
      const T* from = b_step + v * kRegLanes<T>;
      row[v] = EDGE && v == REGS - 1 ? load_reg_first(from, last) : load_reg(from);
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
      const Reg<T> scalar = splat_reg(a_step[r * a.outer]);
#pragma GCC unroll 16
      for (int v = 0; v < REGS; ++v) total[r][v] = K::multiply_add(scalar, row[v], total[r][v], doubt);
      keep(scalar);  // or GCC sums into its register, runs out of them and reads b from the cache again and again
    }
  };
  [[maybe_unused]] const T* next = c;  // a row of c to prefetch in each iteration: all at once would keep b waiting
  for (int64_t left = depth / kUnroll; left > 0; --left, a.data += kUnroll * a.inner, b.data += kUnroll * b.step) {
    if constexpr (kPrefetches) {
      __builtin_prefetch(next, 1);
      __builtin_prefetch(next + cols - 1, 1);
      next += next < c + (ROWS - 1) * ldc ? ldc : 0;
    }
#pragma GCC unroll 16
    for (int u = 0; u < kUnroll; ++u) step(a.data + u * a.inner, b.data + u * b.step);
  }
  for (int64_t left = depth % kUnroll; left > 0; --left, a.data += a.inner, b.data += b.step) step(a.data, b.data);
  if constexpr (Doubt::kPossible) {
    if (is_doubtful(doubt)) [[unlikely]]
      return careful_microkernel<typename K::Careful, ROWS, REGS, EDGE>(depth, all_of_a, all_of_b, c, ldc, cols, add);
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < REGS; ++v) {
      T* to = c + r * ldc + v * kRegLanes<T>;
      if (v == REGS - 1 && last < kRegLanes<T>) {
        store_reg_first(to, add ? K::add(load_reg_first(to, last), total[r][v]) : total[r][v], last);
      } else {
        store_reg(to, add ? K::add(load_reg(to), total[r][v]) : total[r][v]);
      }
    }
  }
}

template <class K, int ROWS, int REGS, bool EDGE, class T>
void careful_microkernel(int64_t depth, const Operand<T>& a, const MicropanelB<T>& b, T* c, int64_t ldc, int64_t cols,
                         bool add) {
  microkernel<K, ROWS, REGS, EDGE>(depth, a, b, c, ldc, cols, add);
}

template <class T>
using Microkernel = void (*)(int64_t depth, const Operand<T>& a, const MicropanelB<T>& b, T* c, int64_t ldc, int64_t cols,
                             bool add);

template <class K, int ROWS, int REGS, class T>
void packed_microkernel(int64_t depth, const Operand<T>& a, const MicropanelB<T>& b, T* c, int64_t ldc, int64_t cols,
                        bool add) {
  microkernel<K, ROWS, REGS, false>(depth, Operand<T>{a.data, 1, kPackedRows}, MicropanelB<T>{b.data, REGS * kRegLanes<T>}, c,
                                    ldc, cols, add);
}
template <class K, int ROWS, int REGS, class T>
void copied_microkernel(int64_t depth, const Operand<T>& a, const MicropanelB<T>& b, T* c, int64_t ldc, int64_t cols,
                        bool add) {
  microkernel<K, ROWS, REGS, false>(depth, Operand<T>{a.data, kRowStride, 1}, MicropanelB<T>{b.data, REGS * kRegLanes<T>}, c,
                                    ldc, cols, add);
}
template <class K, int ROWS, int REGS, bool EDGE, class T>
void in_place_microkernel(int64_t depth, const Operand<T>& a, const MicropanelB<T>& b, T* c, int64_t ldc, int64_t cols,
                          bool add) {
  microkernel<K, ROWS, REGS, EDGE>(depth, a, b, c, ldc, cols, add);
}

/// [rows - 1][registers - 1]: for packed a and b (their steps are constants), with a's numbers along k or its rows side by
/// side, for others, and for a last register that ends early (in double for every last one: half the code).
template <class T>
struct Microkernels {
  Microkernel<T> packed[kRows][kMaxRegs], copied[kRows][kMaxRegs], in_place[kRows][kMaxRegs], in_place_edge[kRows][kMaxRegs];
};

template <class K, int ROWS = kRows, int REGS = regs_for(kRows), class T>
constexpr void fill(Microkernels<T>& t) {
  if constexpr (REGS <= kRegs) t.packed[ROWS - 1][REGS - 1] = packed_microkernel<K, ROWS, REGS, T>;
  if constexpr (REGS <= kRegs && kCopiesRows && K::kInPlace)
    t.copied[ROWS - 1][REGS - 1] = copied_microkernel<K, ROWS, REGS, T>;
  if constexpr (K::kInPlace || REGS < kRegs)
    t.in_place[ROWS - 1][REGS - 1] = in_place_microkernel<K, ROWS, REGS, sizeof(T) == 8, T>;
  if constexpr (K::kInPlace) t.in_place_edge[ROWS - 1][REGS - 1] = in_place_microkernel<K, ROWS, REGS, true, T>;
  if constexpr (REGS > 1) fill<K, ROWS, REGS - 1>(t);
  if constexpr (REGS == 1 && ROWS > 1) fill<K, ROWS - 1, regs_for(ROWS - 1)>(t);
}

template <class K>
constexpr Microkernels<typename K::Number> kMicrokernels = [] {
  Microkernels<typename K::Number> t{};
  fill<K>(t);
  return t;
}();

}  // namespace
}  // namespace onestep::kernels
