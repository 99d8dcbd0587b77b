// Picking single elements by position, composed of the ops of indexing.cpp.
#include "autograd/ops/indexing.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

Tensor flat(const Tensor& x) { return reshape(x, {-1}); }

}  // namespace

Tensor take(const Tensor& x, const Tensor& index) {
  const int64_t n = x.numel();
  const Tensor places = ops::checked_from_start("take", flat(index), n, 0);
  return reshape(ops::selected(reshape(x, n), 0, places), index.shape());
}

Tensor take_along_dim(const Tensor& x, const Tensor& index, std::optional<int64_t> dim) {
  if (!dim) return take_along_dim(flat(x), flat(index), 0);
  ONESTEP_CHECK(ShapeError, x.dim() == index.dim(), "take_along_dim: index of shape ", index.shape(), " for a tensor of shape ",
                x.shape(), " (both need the same number of dims)");
  if (x.dim() == 0) return take(x, index);
  const int d = normalize_dim("take_along_dim", *dim, x.dim());
  Shape from = x.shape(), to = index.shape();
  from[d] = to[d] = 1;
  from = to = broadcast_shapes("take_along_dim", from, to);
  from[d] = x.size(d);
  to[d] = index.size(d);
  const Tensor places = ops::checked_from_start("take_along_dim", index, x.shape(), d);
  return gather(expand(x, from), d, expand(places, to));
}

}  // namespace onestep
