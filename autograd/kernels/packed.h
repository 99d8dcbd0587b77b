#pragma once
#include <cstdint>

namespace onestep::kernels {

/// The right side of a product, op(b) [k, n], in the order in which gemm reads it (pack in kernels.h).
template <class T>
struct Packed {
  const T* data;
  int64_t n, k;
};

}  // namespace onestep::kernels
