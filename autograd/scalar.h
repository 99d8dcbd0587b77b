#pragma once
// A number as an argument.
#include <cstdint>
#include <type_traits>

#include "autograd/dtype.h"

namespace onestep {

/// A number argument that remembers its kind, as in PyTorch: `x + 2` keeps int64, `x + 2.0` makes it float32.
struct Scalar {
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Scalar(T v)
      : value(static_cast<double>(v)),
        integer(std::is_integral_v<T> ? static_cast<int64_t>(v) : 0),
        dtype(std::is_same_v<T, bool> ? DType::boolean
              : std::is_integral_v<T> ? DType::int64
                                      : DType::float32) {}
  double value;
  int64_t integer;  ///< The exact value, unless `dtype` is float32.
  DType dtype;      ///< boolean, int64 or (any floating number) float32.
};

}  // namespace onestep
