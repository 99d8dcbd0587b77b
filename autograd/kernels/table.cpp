#include "autograd/kernels/table.h"

#include "autograd/kernels/isa.h"

namespace onestep::kernels {
namespace {

using Fill = void (*)(Table<float>&);

Table<float> filled(Fill maps, Fill rows, Fill gemm, Fill random) {
  Table<float> t;
  maps(t);
  rows(t);
  gemm(t);
  random(t);
  return t;
}

}  // namespace

template <>
const Table<double>& table() {
  return reference_table();
}

template <>
const Table<float>& table() {
  // A table is filled only when it is asked for: filling it is code of its instruction set too.
  switch (active_isa()) {
#ifdef ONESTEP_X86
    case Isa::avx512: {
      static const Table<float> t = filled(avx512::fill_maps, avx512::fill_rows, avx512::fill_gemm, avx512::fill_random);
      return t;
    }
    case Isa::avx2: {
      static const Table<float> t = filled(avx2::fill_maps, avx2::fill_rows, avx2::fill_gemm, avx2::fill_random);
      return t;
    }
#endif
    default: {
      static const Table<float> t = filled(generic::fill_maps, generic::fill_rows, generic::fill_gemm, generic::fill_random);
      return t;
    }
  }
}

}  // namespace onestep::kernels
