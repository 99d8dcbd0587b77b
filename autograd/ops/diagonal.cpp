// Diagonals and sliding windows: views that pick elements by a stride of their own.
#include <algorithm>

#include "autograd/creation.h"
#include "autograd/ops/common.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

struct TwoDims {
  int first, second;
};
TwoDims two_dims(const char* op, int64_t dim1, int64_t dim2, int rank) {
  const int first = normalize_dim(op, dim1, rank), second = normalize_dim(op, dim2, rank);
  ONESTEP_CHECK(ShapeError, rank >= 2 && first != second, op, ": needs two different dims: got ", dim1, " and ", dim2,
                " for a tensor of rank ", rank);
  return {first, second};
}

}  // namespace

Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  const auto [d1, d2] = two_dims("diagonal", dim1, dim2, x.dim());
  const int64_t down = std::max<int64_t>(-offset, 0), right = std::max<int64_t>(offset, 0);  // where it starts
  const int64_t length = std::max<int64_t>(std::min(x.shape()[d1] - down, x.shape()[d2] - right), 0);
  const int64_t step = x.strides()[d1] + x.strides()[d2];
  const int64_t first = x.offset() + (length == 0 ? 0 : down * x.strides()[d1] + right * x.strides()[d2]);
  Shape shape = x.shape(), strides = x.strides();
  for (const int d : {std::max(d1, d2), std::min(d1, d2)}) shape.erase(d), strides.erase(d);
  shape.push_back(length);
  strides.push_back(step);
  return record_view("diagonal", ops::view_of(x, shape, strides, first), x,
                     [offset, d1 = d1, d2 = d2](const Backward& b) -> Grads {
                       const Tensor dx = zeros(b.input_shape(0), b.grad().dtype());
                       copy_(diagonal(dx, offset, d1, d2), b.grad());
                       return {dx};
                     });
}

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "diag_embed: a rank-0 tensor has no diagonal");
  const auto [d1, d2] = two_dims("diag_embed", dim1, dim2, x.dim() + 1);
  Shape shape = x.shape();
  const int64_t size = shape.back() + std::abs(offset);
  shape.erase(x.dim() - 1);
  for (const int d : {std::min(d1, d2), std::max(d1, d2)}) shape.insert(d, size);
  Tensor y = zeros(shape, x.dtype());
  Tensor window = diagonal(y, offset, d1, d2);
  ops::copy_values(window, x);
  return record("diag_embed", y, {x}, {},
                [offset, d1 = d1, d2 = d2](const Backward& b) -> Grads { return {diagonal(b.grad(), offset, d1, d2)}; });
}

Tensor diag(const Tensor& x, int64_t diagonal) {
  ONESTEP_CHECK(ShapeError, x.dim() == 1 || x.dim() == 2, "diag: needs a vector or a matrix: got shape ", x.shape());
  return x.dim() == 1 ? diag_embed(x, diagonal) : clone(onestep::diagonal(x, diagonal));
}

Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  const int d = normalize_dim("unfold", dimension, x.dim());
  const int64_t places = x.dim() == 0 ? 1 : x.shape()[d];
  ONESTEP_CHECK(ShapeError, size >= 0 && size <= places && step > 0, "unfold: windows of ", size, " places, ", step,
                " apart, in dim ", dimension, " of shape ", x.shape());
  if (x.dim() == 0) return reshape(size == 1 ? x : slice(reshape(x, {1}), 0, 0, 0), {size});
  Shape shape = x.shape(), strides = x.strides();
  const int64_t windows = (places - size) / step + 1;
  shape[d] = windows;
  shape.push_back(size);
  strides.push_back(strides[d]);
  strides[d] *= step;
  return record_view("unfold", ops::view_of(x, shape, strides, x.offset()), x, [=](const Backward& b) -> Grads {
    const Tensor dx = zeros(b.input_shape(0), b.grad().dtype());
    for (int64_t place = 0; place < size; ++place)  // of every window
      add_(slice(dx, d, place, place + (windows - 1) * step + 1, step), select(b.grad(), -1, place));
    return {dx};
  });
}

}  // namespace onestep
