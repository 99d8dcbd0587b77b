#pragma once
// New tensors: from values, filled, counted, random (ops/creation.cpp, ops/random.cpp).
#include <span>
#include <vector>

#include "autograd/random/generator.h"
#include "autograd/tensor.h"

namespace onestep {

/// A number, or a nested braced list of numbers: `tensor({{1, 2}, {3, 4}})`. Integers give int64, bools bool, else float32.
class NestedValues {
 public:
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  NestedValues(T v) : values_{Scalar(v)}, dtype_(values_[0].dtype) {}
  NestedValues(std::initializer_list<NestedValues> rows);
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  const std::vector<Scalar>& values() const { return values_; }

 private:
  std::vector<Scalar> values_;
  Shape shape_;
  DType dtype_;
};

/// The tensor of a nested braced list (torch.tensor). Throws ShapeError when rows differ in length, DTypeError on a number that
/// is not in int64 where that is the dtype.
Tensor tensor(const NestedValues& values);
Tensor tensor(const NestedValues& values, DType dtype);
/// The tensor of `shape` with these row-major values; throws ShapeError unless their number fits.
template <class T>
Tensor from_values(std::span<const T> values, const Shape& shape);
template <class T>
Tensor from_values(const std::vector<T>& values, const Shape& shape) {
  return from_values(std::span<const T>(values), shape);
}
/// Sizes may be given without braces: `zeros(3, 4)`; so with ones, empty, rand and randn.
Tensor zeros(const Shape& shape, DType dtype = DType::float32);
Tensor ones(const Shape& shape, DType dtype = DType::float32);
template <class... I>
requires Sizes<I...> Tensor zeros(I... sizes) { return zeros(Shape{static_cast<int64_t>(sizes)...}); }
template <class... I>
requires Sizes<I...> Tensor ones(I... sizes) { return ones(Shape{static_cast<int64_t>(sizes)...}); }
/// Every element `value`; without a dtype that of the value (bool, int64 or float32), as torch.full. Throws DTypeError on a
/// number that overflows in the dtype, as fill_ and masked_fill do; floats hold infinities.
Tensor full(const Shape& shape, Scalar value);
Tensor full(const Shape& shape, Scalar value, DType dtype);
/// Of the shape of x, and of its dtype or another one.
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor full_like(const Tensor& x, Scalar value);
Tensor empty_like(const Tensor& x);
Tensor zeros_like(const Tensor& x, DType dtype);
Tensor ones_like(const Tensor& x, DType dtype);
Tensor full_like(const Tensor& x, Scalar value, DType dtype);
Tensor empty_like(const Tensor& x, DType dtype);
Tensor rand_like(const Tensor& x, Generator& generator = default_generator());
Tensor randn_like(const Tensor& x, Generator& generator = default_generator());
/// start, start + step, ... before `end`: int64 when all are integers, else float32; where `dtype` is an integer type, steps
/// from the truncated start on (torch.arange). Throws ShapeError on a step that is 0 or leads away from the end.
Tensor arange(Scalar end);
Tensor arange(Scalar start, Scalar end, Scalar step = 1);
Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype);
/// `steps` values from `start` to `end`, evenly apart, both ends among them; of integers the ends and then all values are
/// truncated (torch.linspace). Throws ShapeError on steps < 0, DTypeError for bool.
Tensor linspace(double start, double end, int64_t steps, DType dtype = DType::float32);
/// base to the powers linspace(start, end, steps) (torch.logspace).
Tensor logspace(double start, double end, int64_t steps, double base = 10.0, DType dtype = DType::float32);
/// The identity matrix [n, n], or its first m columns.
Tensor eye(int64_t n, DType dtype = DType::float32);
Tensor eye(int64_t n, int64_t m, DType dtype = DType::float32);
/// The places of the lower / upper triangle of a matrix [rows, cols], with `offset` as in tril / triu: [2, count], rows
/// above columns (torch.tril_indices, torch.triu_indices).
Tensor tril_indices(int64_t rows, int64_t cols, int64_t offset = 0, DType dtype = DType::int64);
Tensor triu_indices(int64_t rows, int64_t cols, int64_t offset = 0, DType dtype = DType::int64);
/// Uniform in [0, 1) from PyTorch's stream (torch.rand).
Tensor rand(const Shape& shape, Generator& generator = default_generator(), DType dtype = DType::float32);
/// Normal with mean 0 and standard deviation 1 from PyTorch's stream (torch.randn).
Tensor randn(const Shape& shape, Generator& generator = default_generator(), DType dtype = DType::float32);
Tensor rand(const Shape& shape, DType dtype);
Tensor randn(const Shape& shape, DType dtype);
template <class... I>
requires Sizes<I...> Tensor rand(I... sizes) { return rand(Shape{static_cast<int64_t>(sizes)...}); }
template <class... I>
requires Sizes<I...> Tensor randn(I... sizes) { return randn(Shape{static_cast<int64_t>(sizes)...}); }
/// int64 uniform in [low, high) from PyTorch's stream (torch.randint).
Tensor randint(int64_t low, int64_t high, const Shape& shape, Generator& generator = default_generator());
Tensor randint(int64_t high, const Shape& shape, Generator& generator = default_generator());
/// A random permutation of 0 .. n-1 (torch.randperm).
Tensor randperm(int64_t n, Generator& generator = default_generator());

}  // namespace onestep
