// Random tensors: PyTorch's streams (random_fill.h) in new tensors.
#include <span>

#include "autograd/ops/common.h"
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

Tensor randperm(int64_t n, Generator& generator) {
  ONESTEP_CHECK(ShapeError, n >= 0, "randperm: n must not be negative: ", n);
  Tensor y = empty(n, DType::int64);
  fill_randperm(elements<int64_t>(y), generator);
  return y;
}

}  // namespace onestep
