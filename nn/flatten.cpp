#include "nn/flatten.h"

namespace onestep::nn {

Tensor Unflatten::forward(const Tensor& x) const {
  const int dim = normalize_dim("Unflatten", dim_, x.dim());
  int64_t known = 1;
  for (const int64_t size : sizes_) known *= size < 0 ? 1 : size;
  const int64_t whole = x.size(dim);
  Shape shape = x.shape(), sizes = sizes_;
  for (int i = 0; i < sizes.rank(); ++i) {
    int64_t& size = sizes[i];
    if (size < 0 && known > 0) size = whole / known;
  }
  ONESTEP_CHECK(ShapeError, sizes.numel() == whole, "Unflatten: sizes ", sizes_, " do not fit dim ", dim, " of ", x.shape());
  shape.erase(dim);
  for (int i = sizes.rank() - 1; i >= 0; --i) shape.insert(dim, sizes[i]);
  return reshape(x, shape);
}

}  // namespace onestep::nn
