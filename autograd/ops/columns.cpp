// Windows of images as columns, and columns added up to images: each other's transpose.
#include "autograd/creation.h"
#include "autograd/kernels/parallel.h"
#include "autograd/ops/windows.h"
#include "autograd/ops_conv.h"

namespace onestep {
namespace {

using ops::WindowDim, ops::Windows2d;

/// Throws ShapeError unless the windows fit into images of size `in` [H, W].
Windows2d windows_of(const char* op, const Shape& in, const Shape& kernel_size, const Shape& dilation, const Shape& padding,
                     const Shape& stride) {
  Windows2d windows;
  for (int i = 0; i < 2; ++i) {
    WindowDim& d = windows.of(2, i);
    d = {.in = in[i],
         .out = 0,
         .kernel = ops::of_dim(op, "kernel_size", kernel_size, 2, i, 1),
         .stride = ops::of_dim(op, "stride", stride, 2, i, 1),
         .padding = ops::of_dim(op, "padding", padding, 2, i, 0),
         .dilation = ops::of_dim(op, "dilation", dilation, 2, i, 1)};
    d.out = ops::windows(d);
    ONESTEP_CHECK(ShapeError, d.out > 0, op, ": the kernel spans ", d.dilation * (d.kernel - 1) + 1,
                  " places, but the padded images have ", d.in + 2 * d.padding, " (dim ", i - 2, " of images of size ", in,
                  ")");
  }
  return windows;
}

/// The windows of one dim: [..., in, ...] -> [..., out, ..., kernel], a view.
Tensor slid(const Tensor& x, int dim, const WindowDim& d) {
  const int64_t span = d.dilation * (d.kernel - 1) + 1;
  return slice(unfold(x, dim, span, d.stride), -1, 0, span, d.dilation);
}

/// planes [P, H, W] += columns [P, KH, KW, OH, OW], each element at its place.
template <class T>
void add_columns(const T* columns, int64_t count, const Windows2d& windows, T* planes) {
  const auto &h = windows.h, &w = windows.w;
  const int64_t positions = h.out * w.out, taps = h.kernel * w.kernel;
  kernels::parallel_for(count, static_cast<double>(taps * positions), [&](int64_t begin, int64_t end) {
    for (int64_t tap = begin * taps; tap < end * taps; ++tap) {
      const int64_t kh = tap / w.kernel % h.kernel, kw = tap % w.kernel;
      const kernels::Span rows = h.outputs(kh), inside = w.outputs(kw);
      for (int64_t oh = rows.begin; oh < rows.end; ++oh) {
        const T* from = columns + tap * positions + oh * w.out;
        T* to = planes + (tap / taps * h.in + h.place(oh, kh)) * w.in;
        for (int64_t ow = inside.begin; ow < inside.end; ++ow) to[w.place(ow, kw)] += from[ow];
      }
    }
  });
}

}  // namespace

Tensor im2col(const Tensor& x, const Shape& kernel_size, const Shape& dilation, const Shape& padding, const Shape& stride) {
  constexpr const char* op = "im2col";
  const Tensor images = ops::as_images(op, x, 2).values();
  const Shape& size = images.shape();
  const Windows2d windows = windows_of(op, {size[2], size[3]}, kernel_size, dilation, padding, stride);
  const auto &h = windows.h, &w = windows.w;
  const Tensor all = slid(slid(pad(images, {w.padding, w.padding, h.padding, h.padding}), 2, h), 3, w);
  Tensor y = view(clone(permute(all, {0, 1, 4, 5, 2, 3})), {size[0], size[1] * h.kernel * w.kernel, h.out * w.out});
  if (x.dim() == 3) y = squeeze(y, 0);
  return record(op, y, {x}, {}, [=, out = Shape{h.in, w.in}](const Backward& b) -> Grads {
    return {col2im(b.grad(), out, kernel_size, dilation, padding, stride)};
  });
}

Tensor col2im(const Tensor& x, const Shape& output_size, const Shape& kernel_size, const Shape& dilation, const Shape& padding,
              const Shape& stride) {
  constexpr const char* op = "col2im";
  ops::check_floating(op, x);
  ONESTEP_CHECK(ShapeError, x.dim() == 2 || x.dim() == 3, op, ": needs columns [N, C KH KW, L] or [C KH KW, L]: got ",
                x.shape());
  const Shape size = {ops::of_dim(op, "output_size", output_size, 2, 0, 1),
                      ops::of_dim(op, "output_size", output_size, 2, 1, 1)};
  const Windows2d windows = windows_of(op, size, kernel_size, dilation, padding, stride);
  const auto &h = windows.h, &w = windows.w;
  const int64_t taps = h.kernel * w.kernel, wanted = h.out * w.out, rows = x.size(-2);
  ONESTEP_CHECK(ShapeError, rows > 0 && rows % taps == 0 && x.size(-1) == wanted, op, ": columns ", x.shape(), " do not fit ",
                wanted, " windows of ", taps, " places in images of size ", size);
  const int64_t images = x.dim() == 3 ? x.shape()[0] : 1, channels = rows / taps;
  const Tensor columns = contiguous(ops::widened(x.values()));
  Tensor planes = zeros({images, channels, h.in, w.in}, columns.dtype());
  dispatch_floating(columns.dtype(), op,
                    [&]<class T>() { add_columns(columns.data<T>(), images * channels, windows, planes.mutable_data<T>()); });
  const Tensor y = ops::rounded(x.dim() == 3 ? planes : squeeze(planes, 0), x.dtype());
  return record(op, y, {x}, {},
                [=](const Backward& b) -> Grads { return {im2col(b.grad(), kernel_size, dilation, padding, stride)}; });
}

}  // namespace onestep
