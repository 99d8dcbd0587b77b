#pragma once
// Products of one type, float32 or float64: gemm.isa.cpp and gemm_double.isa.cpp.
#include "autograd/kernels/gemm_blocks.h"
#include "autograd/kernels/gemm_rows_in_lanes.h"
#include "autograd/kernels/gemm_streamed.h"

namespace onestep::kernels {
namespace {

template <class T, bool CAREFUL = false>
struct Plain {
  using Careful = Plain<T, true>;
  using Element = T;
  using Number = T;
  using Operand = kernels::Operand<T>;
  static constexpr bool kInPlace = true, kMultipliesTiles = false;
  struct Scope {};

  static constexpr int64_t steps(int64_t depth) { return depth; }
  static void pack(const Operand& x, int64_t count, int64_t depth, T* to, int64_t width) {
    kernels::pack(x, count, depth, to, width);
  }
  static void pack_fours(const Operand& x, int64_t count, int64_t depth, T* to) { kernels::pack_fours(x, count, depth, to); }
  ONESTEP_INLINE static Reg<T> multiply_add(Reg<T> a, Reg<T> b, Reg<T> sum, Doubt& doubt) {
    return CAREFUL ? careful_fma(a, b, sum) : fma(a, b, sum, doubt);
  }
  ONESTEP_INLINE static Reg<T> add(Reg<T> a, Reg<T> b) { return a + b; }
};

/// c [m, n] = or += a b^T for columns a, whose elements are `a.outer` apart, and b: nothing is packed, c is written once.
template <class T>
void outer_product(int64_t m, int64_t n, const Operand<T>& a, const T* b, T* c, int64_t ldc, bool accumulate) {
  constexpr int64_t lanes = kRegLanes<T>;
  for (int64_t i = 0; i < m; ++i, c += ldc) {
    const Reg<T> scalar = splat_reg(a.data[i * a.outer]);
    const auto product = [=](Reg<T> row) { return careful_fma(scalar, row, splat_reg(T(0))); };
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      const Reg<T> y = product(load_reg(b + j));
      store_reg(c + j, accumulate ? load_reg(c + j) + y : y);
    }
    if (j == n) continue;
    const Reg<T> y = product(load_reg_first(b + j, n - j));
    store_reg_first(c + j, accumulate ? load_reg_first(c + j, n - j) + y : y, n - j);
  }
}

/// Products of shapes for which there is a faster way than blocks; false for others.
template <class T>
bool multiply_directly(bool trans_b, int64_t m, int64_t n, int64_t k, const Operand<T>& a, const T* b, int64_t ldb, T* c,
                       int64_t ldc, bool accumulate, T* workspace) {
  if (k == 1 && (!trans_b || ldb == 1)) {
    outer_product(m, n, a, b, c, ldc, accumulate);
    return true;
  }
  if constexpr (sizeof(T) == 4) {
    const FewRows few = {.n = n, .k = k, .a = a, .b = b, .ldb = ldb, .c = c, .ldc = ldc, .accumulate = accumulate};
    if (k > 0 && trans_b && m <= kMostDirectRows) {
      few_rows(m, few);
      return true;
    }
    if constexpr (kReadsInOrder) {
      if (k > 0 && trans_b && takes_rows_in_lanes(m, n, k)) {
        rows_in_lanes(m, few, workspace, Gemm<Plain<T>>::workspace(m, n, k, false));
        return true;
      }
      if (k > 0 && !trans_b && takes_streams(m, n, k)) {
        multiply_streamed(m, few, workspace);
        return true;
      }
    }
  }
  return false;
}

template <class T>
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
          const Packed<T>* packed, T* c, int64_t ldc, bool accumulate, const Epilogue& epilogue, T* workspace) {
  const Operand<T> op_a = trans_a ? Operand<T>{a, 1, lda} : Operand<T>{a, lda, 1};
  if (packed || !multiply_directly(trans_b, m, n, k, op_a, b, ldb, c, ldc, accumulate, workspace))
    Gemm<Plain<T>>::run(trans_a, trans_b, m, n, k, a, lda, b, ldb, packed, c, ldc, accumulate, epilogue, workspace);
  else
    epilogue(c, ldc, 0, m, 0, n);
}

}  // namespace

namespace ONESTEP_ISA_NAME {

template <class T>
void fill_gemm(Table<T>& t) {
  t.products = Gemm<Plain<T>>::products(kernels::gemm<T>);
}

}  // namespace ONESTEP_ISA_NAME
}  // namespace onestep::kernels
