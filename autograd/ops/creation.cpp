// Tensors from nothing and from values.
#include <cmath>
#include <cstring>
#include <functional>

#include "autograd/memory.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops_index.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"

namespace onestep {

NestedValues::NestedValues(std::initializer_list<NestedValues> rows)
    : dtype_(rows.size() ? rows.begin()->dtype_ : DType::float32) {
  shape_.push_back(static_cast<int64_t>(rows.size()));
  for (const NestedValues& row : rows) {
    ONESTEP_CHECK(ShapeError, row.shape_ == rows.begin()->shape_, "tensor: rows differ in shape: ", rows.begin()->shape_,
                  " and ", row.shape_);
    values_.insert(values_.end(), row.values_.begin(), row.values_.end());
    if (onestep::is_floating(row.dtype_) || (row.dtype_ == DType::int64 && dtype_ == DType::boolean)) dtype_ = row.dtype_;
  }
  if (rows.size())
    for (int64_t size : rows.begin()->shape_) shape_.push_back(size);
}

Tensor tensor(const NestedValues& values) { return tensor(values, values.dtype()); }

Tensor tensor(const NestedValues& values, DType dtype) {
  Tensor y = empty(values.shape(), dtype);
  dispatch_size(dtype, [&]<class T>() {
    T* to = ops::mutable_units<T>(y);
    for (const Scalar v : values.values()) {
      if (!is_floating(dtype)) ops::check_fits("tensor", v, dtype);  // to float32 what is too large is inf, as in PyTorch
      ONESTEP_CHECK(DTypeError, dtype != DType::uint8 || v.value >= 0, "tensor: ", v.value,
                    " cannot be an element of dtype uint8 (it would overflow)");
      *to++ = ops::element_bits<T>(v, dtype);
    }
  });
  return y;
}

template <class T>
Tensor from_values(std::span<const T> values, const Shape& shape) {
  check_sizes("from_values", shape);
  ONESTEP_CHECK(ShapeError, static_cast<int64_t>(values.size()) == shape.numel(), "from_values: ", values.size(),
                " values for shape ", shape);
  Tensor y = empty(shape, dtype_of<T>());
  if (!values.empty()) std::memcpy(y.mutable_data<T>(), values.data(), values.size_bytes());
  return y;
}
template Tensor from_values(std::span<const float>, const Shape&);
template Tensor from_values(std::span<const double>, const Shape&);
template Tensor from_values(std::span<const int64_t>, const Shape&);
template Tensor from_values(std::span<const bool>, const Shape&);
template Tensor from_values(std::span<const int32_t>, const Shape&);
template Tensor from_values(std::span<const uint8_t>, const Shape&);
template Tensor from_values(std::span<const Half>, const Shape&);
template Tensor from_values(std::span<const BFloat16>, const Shape&);

Tensor zeros(const Shape& shape, DType dtype) {
  check_sizes("zeros", shape);
  auto storage = std::allocate_shared<Storage>(memory::Allocator<Storage>(), shape.numel() * size_of(dtype), true);
  return Tensor(std::move(storage), dtype, shape, contiguous_strides(shape), 0);
}

Tensor full(const Shape& shape, Scalar value, DType dtype) {
  check_sizes("full", shape);
  ops::check_fits("full", value, dtype);
  Tensor y = empty(shape, dtype);
  return fill_(y, value);
}

Tensor full(const Shape& shape, Scalar value) { return full(shape, value, value.dtype); }

Tensor ones(const Shape& shape, DType dtype) {
  check_sizes("ones", shape);
  return full(shape, 1, dtype);
}

Tensor zeros_like(const Tensor& x) { return zeros(x.shape(), x.dtype()); }
Tensor ones_like(const Tensor& x) { return ones(x.shape(), x.dtype()); }
Tensor zeros_like(const Tensor& x, DType dtype) { return zeros(x.shape(), dtype); }
Tensor ones_like(const Tensor& x, DType dtype) { return ones(x.shape(), dtype); }
Tensor full_like(const Tensor& x, Scalar value, DType dtype) { return full(x.shape(), value, dtype); }
Tensor empty_like(const Tensor& x, DType dtype) { return empty(x.shape(), dtype); }
Tensor empty_like(const Tensor& x) { return empty(x.shape(), x.dtype()); }
Tensor rand_like(const Tensor& x, Generator& generator) { return rand(x.shape(), generator, x.dtype()); }
Tensor randn_like(const Tensor& x, Generator& generator) { return randn(x.shape(), generator, x.dtype()); }
Tensor full_like(const Tensor& x, Scalar value) { return full(x.shape(), value, x.dtype()); }

Tensor arange(Scalar end) { return arange(0, end, 1); }

namespace {

/// Integers from `start` on before `end`; their distance may be more than int64 holds.
int64_t count_integers(int64_t start, int64_t end, int64_t step) {
  const auto first = static_cast<uint64_t>(start), last = static_cast<uint64_t>(end), by = static_cast<uint64_t>(step);
  const uint64_t distance = step > 0 ? last - first : first - last, length = step > 0 ? by : 0 - by;
  return static_cast<int64_t>(distance / length + (distance % length != 0));
}

}  // namespace

Tensor arange(Scalar start, Scalar end, Scalar step) {
  const bool floating = is_floating(start.dtype) || is_floating(end.dtype) || is_floating(step.dtype);
  return arange(start, end, step, floating ? DType::float32 : DType::int64);
}

Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype) {
  const auto whole = [](Scalar v) { return is_floating(v.dtype) ? Scalar(ops::element<int64_t>(v.value)) : v; };
  // Of int64 the numbers are made whole before they are counted; of a narrower type afterwards.
  if (dtype == DType::int64) start = whole(start), end = whole(end), step = whole(step);
  const double first = start.value, last = end.value, by = step.value;
  ONESTEP_CHECK(ShapeError, by != 0 && std::isfinite(by) && std::isfinite(first) && std::isfinite(last), "arange: start ",
                first, ", end ", last, ", step ", by, " (needs finite numbers and a step that is not 0)");
  const bool floating = start.dtype == DType::float32 || end.dtype == DType::float32 || step.dtype == DType::float32;
  const bool up = floating ? first <= last : start.integer <= end.integer;
  const bool down = floating ? first >= last : start.integer >= end.integer;
  ONESTEP_CHECK(ShapeError, by > 0 ? up : down, "arange: a step of ", by, " leads away from the end: start ", first, ", end ",
                last);
  const double count = std::ceil((last - first) / by);
  ONESTEP_CHECK(ShapeError, count < 0x1p59, "arange: too many elements: ", count);
  const int64_t n = floating ? static_cast<int64_t>(count) : count_integers(start.integer, end.integer, step.integer);
  if (!is_floating(dtype)) start = whole(start), step = whole(step);
  Tensor y = empty(n, is_floating(start.dtype) || is_floating(step.dtype) ? DType::float64 : DType::int64);
  if (y.is_floating()) {
    auto* to = y.mutable_data<double>();
    for (int64_t i = 0; i < n; ++i) to[i] = start.value + static_cast<double>(i) * step.value;
  } else {
    auto* to = y.mutable_data<int64_t>();
    for (int64_t i = 0; i < n; ++i) to[i] = ops::plus(start.integer, ops::times(i, step.integer));
  }
  return to(y, dtype);
}

Tensor linspace(double start, double end, int64_t steps, DType dtype) {
  check_sizes("linspace", steps);
  ONESTEP_CHECK(DTypeError, dtype != DType::boolean, "linspace: has no meaning for bool");
  if (!is_floating(dtype)) {  // whole ends, and between them what is truncated
    for (double* v : {&start, &end}) {
      ops::check_fits("linspace", *v, dtype);
      *v = std::trunc(*v);
    }
    return to(linspace(start, end, steps, DType::float64), dtype);
  }
  Tensor y = empty(steps, compute_type(dtype));
  dispatch_floating(y.dtype(), "linspace", [&]<class T>() {  // from both ends, so that both are met
    const auto as_element = [dtype](auto v) { return ops::element<T>(ops::rounded(v, dtype)); };
    const T first = as_element(start), last = as_element(end);
    const T step = steps > 1 ? as_element((last - first) / static_cast<T>(steps - 1)) : T(0);
    T* to = y.mutable_data<T>();
    for (int64_t i = 0; i < steps; ++i)
      to[i] = i < steps / 2 || steps == 1 ? first + step * static_cast<T>(i) : last - step * static_cast<T>(steps - 1 - i);
  });
  return ops::rounded(y, dtype);
}

Tensor logspace(double start, double end, int64_t steps, double base, DType dtype) {
  check_sizes("logspace", steps);
  ONESTEP_CHECK(DTypeError, dtype != DType::boolean, "logspace: has no meaning for bool");
  if (!is_floating(dtype) && steps > 1) start = std::trunc(start), end = std::trunc(end);
  const Tensor powers = linspace(start, end, steps, DType::float64);
  return to(pow(full({}, base, DType::float64), powers), dtype);
}

Tensor eye(int64_t n, DType dtype) { return eye(n, n, dtype); }

Tensor eye(int64_t n, int64_t m, DType dtype) {
  check_sizes("eye", {n, m});
  Tensor y = zeros({n, m}, dtype);
  fill_(diagonal(y), 1);
  return y;
}

namespace {

/// Rows above columns of the places of a matrix of ones where `kept` is not 0.
Tensor places(const char* op, int64_t rows, int64_t cols, const std::function<Tensor(const Tensor&)>& kept) {
  check_sizes(op, {rows, cols});
  return contiguous(transpose(nonzero(kept(ones({rows, cols}, DType::boolean))), 0, 1));
}

}  // namespace

Tensor tril_indices(int64_t rows, int64_t cols, int64_t offset, DType dtype) {
  return to(places("tril_indices", rows, cols, [offset](const Tensor& all) { return tril(all, offset); }), dtype);
}
Tensor triu_indices(int64_t rows, int64_t cols, int64_t offset, DType dtype) {
  return to(places("triu_indices", rows, cols, [offset](const Tensor& all) { return triu(all, offset); }), dtype);
}

}  // namespace onestep
