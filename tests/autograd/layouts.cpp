#include "tests/autograd/layouts.h"

#include <limits>

#include "autograd/ops.h"

namespace onestep::testing {
namespace {

/// A tensor of values that must not be read.
Tensor garbage(const Shape& shape, DType dtype) {
  Tensor x = empty(shape, dtype);
  dispatch(dtype, [&]<class T>() {
    T* to = x.mutable_data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      if constexpr (std::is_floating_point_v<T>)
        to[i] = std::numeric_limits<T>::quiet_NaN();
      else
        to[i] = static_cast<T>(std::is_same_v<T, bool> ? i % 2 == 0 : -1000000007);
    }
  });
  return x;
}

Tensor filled(Tensor window, const Tensor& x) {
  copy_(window, x);
  return window;
}

Tensor strided(const Tensor& x) {
  if (x.dim() == 0) return filled(garbage({3}, x.dtype()).select(0, 1), x);
  Shape shape = x.shape();
  shape[x.dim() - 1] *= 2;
  return filled(garbage(shape, x.dtype()).slice(-1, 0, shape.back(), 2), x);
}

Tensor transposed(const Tensor& x) { return x.dim() < 2 ? strided(x) : x.transpose(0, -1).clone().transpose(0, -1); }

Tensor sliced(const Tensor& x) {
  if (x.dim() == 0) return strided(x);
  Shape shape = x.shape();
  for (int i = 0; i < x.dim(); ++i) shape[i] += 3;
  Tensor window = garbage(shape, x.dtype());
  for (int i = 0; i < x.dim(); ++i) window = narrow(window, i, 2, x.shape()[i]);
  return filled(window, x);
}

Tensor expanded(const Tensor& x) {
  for (int i = 0; i < x.dim(); ++i)
    if (x.shape()[i] > 1) return narrow(x, i, 0, 1).expand(x.shape());
  return x;
}

}  // namespace

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all{
      {"transposed", transposed}, {"strided", strided}, {"sliced", sliced}, {"expanded", expanded}};
  return all;
}

}  // namespace onestep::testing
