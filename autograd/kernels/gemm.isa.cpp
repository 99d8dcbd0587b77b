// Products of float32 and float64.
#include "autograd/kernels/gemm_blocks.h"
#include "autograd/kernels/gemm_few_rows.h"

namespace onestep::kernels {
namespace {

template <class T, bool CAREFUL = false>
struct Plain {
  using Careful = Plain<T, true>;
  using Element = T;
  using Number = T;
  using Operand = kernels::Operand<T>;
  static constexpr bool kInPlace = true;
  struct Scope {};

  static constexpr int64_t steps(int64_t depth) { return depth; }
  static void pack(const Operand& x, int64_t count, int64_t depth, T* to, int64_t width) {
    kernels::pack(x, count, depth, to, width);
  }
  ONESTEP_INLINE static Reg<T> multiply_add(Reg<T> a, Reg<T> b, Reg<T> sum, Doubt& doubt) {
    return CAREFUL ? careful_fma(a, b, sum) : fma(a, b, sum, doubt);
  }
  ONESTEP_INLINE static Reg<T> add(Reg<T> a, Reg<T> b) { return a + b; }
};

template <class T>
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
          const Packed<T>* packed, T* c, int64_t ldc, bool accumulate, T* workspace) {
  if constexpr (sizeof(T) == 4) {
    const Operand<T> op_a = trans_a ? Operand<T>{a, 1, lda} : Operand<T>{a, lda, 1};
    if (trans_b && !packed && m <= kMostDirectRows && k > 0)
      return few_rows(m, {.n = n, .k = k, .a = op_a, .b = b, .ldb = ldb, .c = c, .ldc = ldc, .accumulate = accumulate});
  }
  Gemm<Plain<T>>::run(trans_a, trans_b, m, n, k, a, lda, b, ldb, packed, c, ldc, accumulate, workspace);
}

}  // namespace

namespace ONESTEP_ISA_NAME {

template <class T>
void fill_gemm(Table<T>& t) {
  t.products = Gemm<Plain<T>>::products(kernels::gemm<T>);
}
template void fill_gemm(Table<float>&);
template void fill_gemm(Table<double>&);

}  // namespace ONESTEP_ISA_NAME
}  // namespace onestep::kernels
