#include "autograd/kernels/table.h"

#include "autograd/kernels/isa.h"

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
    case Isa::avx512: {
      static const Table<double> t = with_products(avx512::fill_gemm<double>);
      return t;
    }
    case Isa::avx2: {
      static const Table<double> t = with_products(avx2::fill_gemm<double>);
      return t;
    }
#endif
    default: {
      static const Table<double> t = with_products(generic::fill_gemm<double>);
      return t;
    }
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

template <>
const Table<float>& table() {
  // A table is filled only when it is asked for: filling it is code of its instruction set too.
  switch (active_isa()) {
#ifdef ONESTEP_X86
    case Isa::avx512: {
      static const Table<float> t =
          filled(avx512::fill_maps, avx512::fill_rows, avx512::fill_gemm<float>, avx512::fill_random, avx512::fill_convolution);
      return t;
    }
    case Isa::avx2: {
      static const Table<float> t =
          filled(avx2::fill_maps, avx2::fill_rows, avx2::fill_gemm<float>, avx2::fill_random, avx2::fill_convolution);
      return t;
    }
#endif
    default: {
      static const Table<float> t = filled(generic::fill_maps, generic::fill_rows, generic::fill_gemm<float>,
                                           generic::fill_random, generic::fill_convolution);
      return t;
    }
  }
}

}  // namespace onestep::kernels
