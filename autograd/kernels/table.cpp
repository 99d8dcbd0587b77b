#include "autograd/kernels/table.h"

#include "autograd/kernels/isa.h"

#ifdef ONESTEP_AVX_VNNI
#include <cpuid.h>
#endif

// Cases of a switch on active_isa(). A table is filled only when it is asked for: filling it is code of its instruction set
// too.
#define ONESTEP_FLOAT_TABLE(ISA)                                                                                \
  case Isa::ISA: {                                                                                              \
    static const Table<float> t =                                                                               \
        filled(ISA::fill_maps, ISA::fill_rows, ISA::fill_gemm<float>, ISA::fill_random, ISA::fill_convolution); \
    return t;                                                                                                   \
  }
#define ONESTEP_DOUBLE_TABLE(ISA)                                         \
  case Isa::ISA: {                                                        \
    static const Table<double> t = with_products(ISA::fill_gemm<double>); \
    return t;                                                             \
  }

namespace onestep::kernels {
namespace {

using Fill = void (*)(Table<float>&);

Table<float> filled(Fill maps, Fill rows, Fill gemm, Fill random, Fill convolution) {
  Table<float> t;
  maps(t);
  rows(t);
  gemm(t);
  random(t);
  convolution(t);
  return t;
}

Table<double> with_products(void (*gemm)(Table<double>&)) {
  Table<double> t = reference_table();
  gemm(t);
  return t;
}

}  // namespace

template <>
const Table<double>& table() {
  switch (active_isa()) {
#ifdef ONESTEP_X86
    ONESTEP_DOUBLE_TABLE(avx512)
    ONESTEP_DOUBLE_TABLE(avx2)
#endif
#ifdef ONESTEP_WASM
    ONESTEP_DOUBLE_TABLE(wasm)
    ONESTEP_DOUBLE_TABLE(wasm_relaxed)
#endif
    default:
      ONESTEP_DOUBLE_TABLE(generic)
  }
}

template <>
const Products<float>& products() {
  return table<float>().products;
}
template <>
const Products<double>& products() {
  return table<double>().products;
}

template <>
const Products<BFloat16>& products() {
  switch (active_isa()) {
#ifdef ONESTEP_X86
    case Isa::avx512: {
      static const Products<BFloat16> widened = avx512::bf16_products();
#ifdef ONESTEP_BF16_DOT
      if (bf16_dot_in_use()) {
        static const Products<BFloat16> dots = avx512bf16::bf16_products();
        return dots;
      }
#endif
      return widened;
    }
    case Isa::avx2: {
      static const Products<BFloat16> widened = avx2::bf16_products();
      return widened;
    }
#endif
    default: {
      static const Products<BFloat16> widened = generic::bf16_products();
      return widened;
    }
  }
}

#ifdef ONESTEP_AVX_VNNI
/// Whether a CPU with AVX2 has AVX-VNNI, which no version of Clang before 17 has a name for.
static bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
}
#endif

const WeightProducts& weight_products() {
  switch (active_isa()) {
#ifdef ONESTEP_X86
    case Isa::avx512: {
#ifdef ONESTEP_AVX512_VNNI
      static const WeightProducts products =
          __builtin_cpu_supports("avx512vnni") ? avx512vnni::weight_products() : avx512::weight_products();
#else
      static const WeightProducts products = avx512::weight_products();
#endif
      return products;
    }
    case Isa::avx2: {
#ifdef ONESTEP_AVX_VNNI
      static const WeightProducts products = has_avx_vnni() ? avxvnni::weight_products() : avx2::weight_products();
#else
      static const WeightProducts products = avx2::weight_products();
#endif
      return products;
    }
#endif
    default: {
      static const WeightProducts products = generic::weight_products();
      return products;
    }
  }
}

template <>
const Table<float>& table() {
  switch (active_isa()) {
#ifdef ONESTEP_X86
    ONESTEP_FLOAT_TABLE(avx512)
    ONESTEP_FLOAT_TABLE(avx2)
#endif
#ifdef ONESTEP_WASM
    ONESTEP_FLOAT_TABLE(wasm)
    ONESTEP_FLOAT_TABLE(wasm_relaxed)
#endif
    default:
      ONESTEP_FLOAT_TABLE(generic)
  }
}

#undef ONESTEP_FLOAT_TABLE
#undef ONESTEP_DOUBLE_TABLE

}  // namespace onestep::kernels
