#pragma once
// What convolutions and pooling share: arguments of one number for all dims or one a dim, and the windows that they make.
#include <string_view>

#include "autograd/kernels/convolution.h"
#include "autograd/ops/common.h"
#include "autograd/ops_shape.h"

namespace onestep::ops {

using kernels::WindowDim;

/// The number that argument `what` has for dim i of `dims`. Throws ShapeError unless it is at least `least`.
inline int64_t of_dim(std::string_view op, std::string_view what, const Shape& sizes, int dims, int i, int64_t least) {
  ONESTEP_CHECK(ShapeError, sizes.rank() == 1 || sizes.rank() == dims, op, ": ", what, " ", sizes, " needs one number or ",
                dims);
  const int64_t size = sizes[sizes.rank() == 1 ? 0 : i];
  ONESTEP_CHECK(ShapeError, size >= least, op, ": ", what, " must be at least ", least, ": got ", sizes);
  return size;
}

/// The number of windows that fit.
inline int64_t windows(const WindowDim& d) {
  const int64_t room = d.in + 2 * d.padding - d.dilation * (d.kernel - 1) - 1;
  return room < 0 ? 0 : room / d.stride + 1;
}

/// One dim of a tensor that has only the other one.
inline constexpr WindowDim kOnePlace = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .padding = 0, .dilation = 1};

struct Windows2d {
  WindowDim h = kOnePlace, w = kOnePlace;
  WindowDim& of(int dims, int i) { return dims - i == 1 ? w : h; }
};

/// The windows of a pool of fixed size. Throws ShapeError naming `op`.
Windows2d pool_windows(std::string_view op, const Tensor& x, int dims, const Shape& kernel_size, const Shape& stride,
                       const Shape& padding, const Shape& dilation, bool ceil_mode);

/// Those of an adaptive pool, which have kernel 0: output o takes the places of [begin, end).
Windows2d adaptive_windows(std::string_view op, const Tensor& x, int dims, const Shape& output_size);

/// The places of one output's window that lie inside the input: begin, begin + step, ... below end.
struct Places {
  int64_t begin, end, step;
};
Places places_of(const WindowDim& d, int64_t o);

/// x [N, C, L] or [C, L] as [N, C, 1, L], x [C, H, W] as [1, C, H, W]. Throws ShapeError for other ranks than dims + 1 and
/// dims + 2.
inline Tensor as_images(std::string_view op, const Tensor& x, int dims, bool integers = false) {
  if (!integers || x.dtype() == DType::boolean) check_floating(op, x);
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
