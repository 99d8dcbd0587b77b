#pragma once
// What convolutions and pooling share: arguments of one number for all dims or one a dim, and the windows that they make.
#include <string_view>

#include "autograd/kernels/convolution.h"
#include "autograd/ops/common.h"

namespace onestep::ops {

using kernels::WindowDim;

/// The number that argument `what` has for dim i of `dims`. Throws ShapeError unless it is at least `least`.
inline int64_t of_dim(std::string_view op, std::string_view what, const Shape& sizes, int dims, int i, int64_t least) {
  ONESTEP_CHECK(ShapeError, sizes.rank() == 1 || sizes.rank() == dims, op, ": ", what, " ", sizes, " needs one number or ", dims);
  const int64_t size = sizes[sizes.rank() == 1 ? 0 : i];
  ONESTEP_CHECK(ShapeError, size >= least, op, ": ", what, " must be at least ", least, ": got ", sizes);
  return size;
}

/// The number of windows that fit.
inline int64_t windows(const WindowDim& d) {
  const int64_t room = d.in + 2 * d.padding - d.dilation * (d.kernel - 1) - 1;
  return room < 0 ? 0 : room / d.stride + 1;
}

/// x [N, C, L] or [C, L] as [N, C, 1, L], x [C, H, W] as [1, C, H, W]. Throws ShapeError for other ranks than dims + 1 and
/// dims + 2.
inline Tensor as_images(std::string_view op, const Tensor& x, int dims) {
  check_floating(op, x);
  ONESTEP_CHECK(ShapeError, x.dim() == dims + 1 || x.dim() == dims + 2, op, ": needs ",
                dims == 1 ? "[N, C, L] or [C, L]" : "[N, C, H, W] or [C, H, W]", ": got ", x.shape());
  const Tensor batch = x.dim() == dims + 1 ? unsqueeze(x, 0) : x;
  return dims == 1 ? unsqueeze(batch, 2) : batch;
}

/// The result for images back in the rank of x.
inline Tensor like_input(const Tensor& y, const Tensor& x, int dims) {
  const Tensor planes = dims == 1 ? squeeze(y, 2) : y;
  return x.dim() == dims + 1 ? squeeze(planes, 0) : planes;
}

}  // namespace onestep::ops
