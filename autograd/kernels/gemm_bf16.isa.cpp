// Products of numbers rounded to bfloat16, summed in float32, in both orders of sums.
#if defined(ONESTEP_TILES)
#include "autograd/kernels/gemm_bf16_amx.h"

namespace onestep::kernels::avx512amx {
Products<BFloat16> tiled_bf16_products() { return AmxGemm::products(); }
}  // namespace onestep::kernels::avx512amx
#else
#include "autograd/kernels/gemm_bf16_tiles.h"

namespace onestep::kernels {
namespace {

/// The epilogue follows in the CPU's own modes, in which subnormal numbers are numbers.
template <class K>
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Bf16Source a, int64_t lda, Bf16Source b, int64_t ldb,
          const Packed<BFloat16>* packed, float* c, int64_t ldc, bool accumulate, const Epilogue& epilogue, float* workspace) {
  if (!c) {
    c = workspace + Gemm<K>::workspace(m, n, k, false);
    ldc = n;
  }
  Gemm<K>::run(trans_a, trans_b, m, n, k, a, lda, b, ldb, packed, c, ldc, accumulate, {}, workspace);
  epilogue(c, ldc, 0, m, 0, n);
}

}  // namespace

#if defined(__AVX512BF16__)
namespace avx512bf16 {
Products<BFloat16> bf16_products() { return Gemm<PackedBf16>::products(gemm<PackedBf16>); }
}  // namespace avx512bf16
#elif defined(ONESTEP_ISA_generic)
namespace generic {
// Of the order that bf16_in_tiles() says: generic has no others.
Products<BFloat16> tiled_bf16_products() { return Gemm<TiledBf16>::products(gemm<TiledBf16>); }
}  // namespace generic
#else
namespace ONESTEP_ISA_NAME {
Products<BFloat16> bf16_products() { return Gemm<PackedBf16>::products(gemm<PackedBf16>); }
Products<BFloat16> tiled_bf16_products() { return Gemm<TiledBf16>::products(gemm<TiledBf16>); }
}  // namespace ONESTEP_ISA_NAME
#endif

}  // namespace onestep::kernels
#endif
