// Plain copies and views that the op files build on.
#include "autograd/ops/common.h"
#include "autograd/ops/strided.h"

namespace onestep::ops {

Tensor view_of(const Tensor& x, const Shape& shape, const Shape& strides, int64_t offset) {
  Tensor view(x.impl().storage, x.dtype(), shape, strides, offset);
  view.impl().history = x.impl().history;
  return view;
}

Tensor contiguous_values(const Tensor& x) {
  if (x.is_contiguous()) return x.detach();
  Tensor y = empty(x.shape(), x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    for_each_row<2>(x.shape(), {x.strides(), y.strides()}, [=](const auto& offsets, int64_t n, const auto& steps) {
      const T* source = from + offsets[0];
      T* target = to + offsets[1];
      for (int64_t j = 0; j < n; ++j) target[j * steps[1]] = source[j * steps[0]];
    });
  });
  return y;
}

Shape broadcast_strides(const Tensor& x, const Shape& shape) {
  const int added = shape.rank() - x.dim();
  Shape strides = Shape::filled(shape.rank(), 0);
  for (int i = 0; i < x.dim(); ++i)
    if (x.shape()[i] == shape[added + i]) strides[added + i] = x.strides()[i];
  return strides;
}

Tensor expand_values(std::string_view op, const Tensor& x, const Shape& shape) {
  const int added = shape.rank() - x.dim();
  bool fits = added >= 0;
  for (int i = 0; fits && i < x.dim(); ++i) fits = x.shape()[i] == shape[added + i] || x.shape()[i] == 1;
  check<ShapeError>(fits, op, ": shape ", x.shape(), " does not broadcast to ", shape,
                    " (from the right, each size must be 1 or equal)");
  return view_of(x, shape, broadcast_strides(x, shape), x.offset());
}

}  // namespace onestep::ops
