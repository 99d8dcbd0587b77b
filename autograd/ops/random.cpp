// Random tensors: PyTorch's streams (random_fill.h) in new tensors.
#include <algorithm>
#include <span>

#include "autograd/creation.h"
#include "autograd/ops/common.h"
#include "autograd/ops_order.h"
#include "autograd/random/random_fill.h"

namespace onestep {
namespace {

template <class T>
std::span<T> elements(Tensor& x) {
  return {x.mutable_data<T>(), static_cast<size_t>(x.numel())};
}

}  // namespace

Tensor rand(const Shape& shape, Generator& generator, DType dtype) {
  check_sizes("rand", shape);
  Tensor y = empty(shape, dtype);
  dispatch_random(dtype, "rand", [&]<class T>() { fill_uniform(elements<T>(y), 0, 1, generator); });
  return y;
}

Tensor randn(const Shape& shape, Generator& generator, DType dtype) {
  check_sizes("randn", shape);
  Tensor y = empty(shape, dtype);
  dispatch_random(dtype, "randn", [&]<class T>() { fill_normal(elements<T>(y), 0, 1, generator); });
  return y;
}

Tensor rand(const Shape& shape, DType dtype) { return rand(shape, default_generator(), dtype); }
Tensor randn(const Shape& shape, DType dtype) { return randn(shape, default_generator(), dtype); }

Tensor randint(int64_t low, int64_t high, const Shape& shape, Generator& generator) {
  check_sizes("randint", shape);
  Tensor y = empty(shape, DType::int64);
  fill_randint(elements<int64_t>(y), low, high, generator);
  return y;
}

Tensor randint(int64_t high, const Shape& shape, Generator& generator) { return randint(0, high, shape, generator); }

Tensor randperm(int64_t n, Generator& generator) {
  ONESTEP_CHECK(ShapeError, n >= 0, "randperm: n must not be negative: ", n);
  Tensor y = empty(n, DType::int64);
  fill_randperm(elements<int64_t>(y), generator);
  return y;
}

Tensor multinomial(const Tensor& weights, int64_t num_samples, bool replacement, Generator& generator) {
  ONESTEP_CHECK(ShapeError, weights.dim() == 1 || weights.dim() == 2, "multinomial: weights must be [n] or [rows, n]: got ",
                weights.shape());
  const Tensor rows = ops::contiguous_values(ops::widened(weights));
  Shape shape = weights.shape();
  shape[weights.dim() - 1] = std::max<int64_t>(num_samples, 0);
  Tensor y = empty(shape, DType::int64);
  dispatch_floating(rows.dtype(), "multinomial", [&]<class T>() {
    const std::span all(rows.data<T>(), static_cast<size_t>(rows.numel()));
    multinomial<T>(all, weights.dim() == 1 ? 1 : weights.size(0), num_samples, replacement, elements<int64_t>(y), generator);
  });
  return y;
}

}  // namespace onestep
