#include "autograd/ops/windows.h"

#include <algorithm>

namespace onestep::ops {

Windows2d pool_windows(std::string_view op, const Tensor& x, int dims, const Shape& kernel_size, const Shape& stride,
                       const Shape& padding, const Shape& dilation, bool ceil_mode) {
  Windows2d windows;
  for (int i = 0; i < dims; ++i) {
    WindowDim& d = windows.of(dims, i);
    d = {.in = x.size(i - dims),
         .out = 0,
         .kernel = of_dim(op, "kernel_size", kernel_size, dims, i, 1),
         .stride = of_dim(op, "stride", stride.empty() ? kernel_size : stride, dims, i, 1),
         .padding = of_dim(op, "padding", padding, dims, i, 0),
         .dilation = of_dim(op, "dilation", dilation, dims, i, 1)};
    const int64_t span = d.dilation * (d.kernel - 1) + 1;
    ONESTEP_CHECK(ShapeError, d.padding <= span / 2, op, ": padding ", padding, " is more than half of kernel_size ",
                  kernel_size);
    const int64_t room = d.in + 2 * d.padding - span;
    d.out = room < 0 ? 0 : room / d.stride + 1;
    // With ceil_mode a last window may end outside, but it has to begin in the input or the padding before it.
    if (ceil_mode && room + d.stride > 0 && room % d.stride != 0 && d.out * d.stride < d.in + d.padding) ++d.out;
    ONESTEP_CHECK(ShapeError, d.out > 0 && d.in > 0, op, ": a window spans ", span, " places, but the padded input has ",
                  d.in + 2 * d.padding, " (dim ", i - dims, " of input ", x.shape(), ")");
  }
  return windows;
}

Windows2d adaptive_windows(std::string_view op, const Tensor& x, int dims, const Shape& output_size) {
  Windows2d windows;
  for (int i = 0; i < dims; ++i) {
    WindowDim& d = windows.of(dims, i);
    const int64_t size = of_dim(op, "output_size", output_size, dims, i, -1), in = x.size(i - dims);
    ONESTEP_CHECK(ShapeError, in > 0, op, ": dim ", i - dims, " of input ", x.shape(), " is empty");
    d = {.in = in, .out = size < 0 ? in : size, .kernel = 0, .stride = 1, .padding = 0, .dilation = 1};
  }
  check_sizes(op, {x.numel(), windows.h.out, windows.w.out});  // at least as many as the output has
  return windows;
}

Places places_of(const WindowDim& d, int64_t o) {
  if (d.kernel == 0) return {o * d.in / d.out, ((o + 1) * d.in + d.out - 1) / d.out, 1};
  const int64_t first = d.place(o, 0), last = d.place(o, d.kernel - 1);
  const int64_t skipped = first < 0 ? (-first + d.dilation - 1) / d.dilation : 0;
  return {first + skipped * d.dilation, std::min(last + 1, d.in), d.dilation};
}

}  // namespace onestep::ops
