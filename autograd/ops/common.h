#pragma once
// What the op files share: plain-value helpers that record nothing.
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "autograd/ops.h"

namespace onestep::ops {

/// Throws DTypeError naming `op` unless both tensors have the same dtype.
inline void check_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  ONESTEP_CHECK(DTypeError, a.dtype() == b.dtype(), op, ": dtypes differ: ", a.dtype(), " and ", b.dtype(),
                " (convert one with to())");
}

/// Throws DTypeError naming `op` unless x is float32 or float64.
inline void check_floating(std::string_view op, const Tensor& x) {
  dispatch_floating(x.dtype(), op, []<class T>() {});
}

/// The order of dims that undoes permute(x, order).
inline Shape inverse_order(const Shape& order) {
  Shape inverse = order;
  for (int i = 0; i < order.rank(); ++i) inverse[static_cast<int>(order[i])] = i;
  return inverse;
}

/// `v` as T. To bool: true unless 0. A float outside int64 (or NaN) becomes the smallest int64, as x86 converts it.
template <class T, class V>
T convert(V v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != V(0);
  } else if constexpr (std::is_same_v<T, int64_t> && std::is_floating_point_v<V>) {
    return v >= V(-0x1p63) && v < V(0x1p63) ? static_cast<T>(v) : std::numeric_limits<T>::min();
  } else {
    return static_cast<T>(v);
  }
}

/// condition ? a : b without a branch: masks are often random, and a mispredicted branch costs more than the selection.
template <class T>
T select_value(bool condition, T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint8_t>>;
  const Bits all = static_cast<Bits>(-static_cast<int64_t>(condition));
  return std::bit_cast<T>(
      static_cast<Bits>((std::bit_cast<Bits>(a) & all) | (std::bit_cast<Bits>(b) & static_cast<Bits>(~all))));
}

/// A number as an element of type T.
template <class T>
T element(Scalar number) {
  if constexpr (std::is_same_v<T, int64_t>) {
    if (number.dtype != DType::float32) return number.integer;
  }
  return convert<T>(number.value);
}

/// Throws DTypeError naming `op` where an element of `dtype` cannot hold the number, as torch.full; fractions are cut off.
inline void check_fits(std::string_view op, Scalar number, DType dtype) {
  if (number.dtype != DType::float32) return;
  const double v = number.value;
  constexpr double max = std::numeric_limits<float>::max();
  const bool fits = dtype == DType::int64     ? v >= -0x1p63 && v < 0x1p63
                    : dtype == DType::float32 ? !(std::abs(v) > max) || std::isinf(v)
                                              : true;
  ONESTEP_CHECK(DTypeError, fits, op, ": ", v, " cannot be an element of dtype ", dtype, " (it would overflow)");
}

/// A view of x's storage without graph.
Tensor view_of(const Tensor& x, const Shape& shape, const Shape& strides, int64_t offset);

/// Writes the elements of `source` into `target` (same shape, any strides; shared memory only in the same
/// arrangement), converted; not recorded.
void copy_values(Tensor& target, const Tensor& source);

/// x itself if its rows are in order, else a row-major copy; not recorded.
Tensor contiguous_values(const Tensor& x);

/// The strides of x seen in a shape to which it broadcasts: 0 along repeated dims.
Shape broadcast_strides(const Tensor& x, const Shape& shape);

/// x seen in a broadcast shape (stride 0 along repeated dims); not recorded. Throws ShapeError naming `op`.
Tensor expand_values(std::string_view op, const Tensor& x, const Shape& shape);

/// Undoes broadcasting: sums `grad` over the dims along which a tensor of `shape` was repeated.
Tensor sum_to(const Tensor& grad, const Shape& shape);

}  // namespace onestep::ops
