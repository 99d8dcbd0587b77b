#pragma once
// What the op files share: plain-value helpers that record nothing.
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "autograd/ops_math.h"
#include "autograd/tensor.h"

namespace onestep::ops {

/// The elements of x as integers of their size (see dispatch_size), for reading and for writing. To the compiler they may be
/// anything from here on: what was written to them before as floats is in memory.
template <class U>
const U* units(const Tensor& x) {
  const void* first = x.data_ptr();
  asm volatile("" : "+r"(first) : : "memory");
  return static_cast<const U*>(first);
}
template <class U>
U* mutable_units(Tensor& x) {
  void* first = x.mutable_data_ptr();
  asm volatile("" : "+r"(first) : : "memory");
  return static_cast<U*>(first);
}

/// Throws DTypeError naming `op` unless both tensors have the same dtype.
inline void check_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  ONESTEP_CHECK(DTypeError, a.dtype() == b.dtype(), op, ": dtypes differ: ", a.dtype(), " and ", b.dtype(),
                " (convert one with to())");
}

/// Throws DTypeError naming `op` unless x is of a floating dtype.
inline void check_floating(std::string_view op, const Tensor& x) {
  ONESTEP_CHECK(DTypeError, x.is_floating(), op, ": needs a floating dtype: got ", x.dtype(),
                " (convert with x.to(DType::float32))");
}

/// f of each.
inline std::vector<Tensor> each(TensorList tensors, Tensor (*f)(const Tensor&)) {
  std::vector<Tensor> results;
  for (const Tensor& x : tensors) results.push_back(f(x));
  return results;
}

/// The order of dims that undoes permute(x, order).
inline Shape inverse_order(const Shape& order) {
  Shape inverse = order;
  for (int i = 0; i < order.rank(); ++i) inverse[static_cast<int>(order[i])] = i;
  return inverse;
}

/// `v` as T. To bool: true unless 0. A float outside int64 or int32 (or NaN) becomes the smallest one, as x86 converts it.
template <class T, class V>
T convert(V v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != V(0);
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<V>) {
    constexpr V beyond = sizeof(T) == 8 ? V(0x1p63) : V(0x1p31);
    const bool fits = sizeof(T) == 8 ? v >= -beyond && v < beyond : v > -beyond - 1 && v < beyond;
    return fits ? static_cast<T>(v) : std::numeric_limits<T>::min();
  } else {
    return static_cast<T>(v);
  }
}

/// condition ? a : b without a branch: masks are often random, and a mispredicted branch costs more than the selection.
template <class T>
T select_value(bool condition, T a, T b) {
  using Small = std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>;
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, Small>>;
  const Bits all = static_cast<Bits>(-static_cast<int64_t>(condition));
  return std::bit_cast<T>(
      static_cast<Bits>((std::bit_cast<Bits>(a) & all) | (std::bit_cast<Bits>(b) & static_cast<Bits>(~all))));
}

/// Throws DTypeError naming `op` unless a parameter has the dtype of x, or is float32 where x is float16 or bfloat16, as under
/// autocast.
inline void check_parameter_dtype(std::string_view op, const Tensor& x, const Tensor& parameter) {
  if (parameter.dtype() != DType::float32 || !is_half(x.dtype())) check_same_dtype(op, x, parameter);
}

/// A number as an element of compute type T.
template <class T>
T element(Scalar number) {
  if constexpr (std::is_same_v<T, int64_t>) {
    if (number.dtype != DType::float32) return number.integer;
  }
  return convert<T>(number.value);
}

/// The number as an element of `dtype` at `to`.
void write_element(Scalar number, DType dtype, void* to);

/// A number as an element of any dtype: its bits, in the unsigned integer of that size.
template <class U>
U element_bits(Scalar number, DType dtype) {
  U bits;
  write_element(number, dtype, &bits);
  return bits;
}

/// The number as the nearest element of `dtype` where that is a narrow one (uint8: modulo 256), for ops that take it as such.
Scalar rounded(Scalar number, DType dtype);

/// Throws DTypeError naming `op` where an element of `dtype` cannot hold the number, as torch.full; fractions are cut off, and
/// a negative number wraps around in uint8.
void check_fits(std::string_view op, Scalar number, DType dtype);

/// A view of x's storage without graph.
Tensor view_of(const Tensor& x, const Shape& shape, const Shape& strides, int64_t offset);

/// Writes the elements of `source` into `target` (same shape, any strides; shared memory only in the same
/// arrangement), converted; not recorded.
void copy_values(Tensor& target, const Tensor& source);

/// `n` elements of one dtype as those of another: narrow ones are widened, converted, and narrowed.
void convert_elements(DType from_type, const void* from, DType to_type, void* to, int64_t n);

/// x's elements as another dtype; not recorded. `to` is.
Tensor converted(const Tensor& x, DType dtype);

/// x as the dtype in which it is computed with, and a result as the dtype in which it is kept; not recorded.
inline Tensor widened(const Tensor& x) { return is_narrow(x.dtype()) ? converted(x, compute_type(x.dtype())) : x; }
inline Tensor rounded(Tensor y, DType dtype) { return y.dtype() == dtype ? std::move(y) : converted(y, dtype); }

/// The same in the graph: for an op that computes as a whole in the wider dtype.
inline Tensor wide(const Tensor& x) { return x.defined() ? to(x, compute_type(x.dtype())) : x; }

/// x itself if its rows are in order, else a row-major copy; not recorded.
Tensor contiguous_values(const Tensor& x);
inline Tensor rows_or_undefined(const Tensor& x) { return x.defined() ? contiguous_values(x) : Tensor(); }

template <class T>
const T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<T>() : nullptr;
}

/// A copy of x in x's place in the graph, which a rule can save when x is about to be written to.
Tensor as_it_was(const Tensor& x);

/// The strides of x seen in a shape to which it broadcasts: 0 along repeated dims.
Shape broadcast_strides(const Tensor& x, const Shape& shape);

/// x seen in a broadcast shape (stride 0 along repeated dims); not recorded. Throws ShapeError naming `op`.
Tensor expand_values(std::string_view op, const Tensor& x, const Shape& shape);

/// Undoes broadcasting: sums `grad` over the dims along which a tensor of `shape` was repeated.
Tensor sum_to(const Tensor& grad, const Shape& shape);

}  // namespace onestep::ops
