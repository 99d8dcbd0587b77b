// Convolutions. The forward pass, the gradient for the input and that for the weight are linear in both operands, and the
// gradients of each are the other two: recorded as such they have derivatives of any order.
#include <string_view>

#include "autograd/autocast.h"
#include "autograd/ops/patches.h"
#include "autograd/ops/windows.h"
#include "autograd/ops_conv.h"

namespace onestep {

using kernels::Convolution, ops::WindowDim;

Padding::Padding(const char* name) : same(std::string_view(name) == "same") {
  ONESTEP_CHECK(ConfigError, same || std::string_view(name) == "valid", "padding: \"", name,
                "\" is neither \"same\" nor \"valid\"");
}

namespace {

Tensor input_grad(const Convolution& conv, const Tensor& dy, const Tensor& weight);
Tensor weight_grad(const Convolution& conv, const Tensor& x, const Tensor& dy);

Tensor saved_if(bool needed, const Tensor& x) { return needed ? x : Tensor(); }

Tensor convolve(const Convolution& conv, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor y = empty({conv.images, conv.groups * conv.out_channels, conv.h.out, conv.w.out}, x.dtype());
  const Tensor from = ops::contiguous_values(x), w = ops::contiguous_values(weight);
  const Tensor shift = bias.defined() ? ops::contiguous_values(bias) : Tensor();
  if (ops::cuts_patches(conv))
    ops::patch_convolution(conv, from, w, shift, y);
  else
    dispatch_floating(x.dtype(), "conv2d", [&]<class T>() {
      kernels::convolution(conv, from.data<T>(), w.data<T>(), shift.defined() ? shift.data<T>() : nullptr, y.mutable_data<T>());
    });
  return record("conv2d", y, {x, weight, bias}, {saved_if(weight.requires_grad(), x), saved_if(x.requires_grad(), weight)},
                [conv](const Backward& b) -> Grads {
                  return {b.needs(0) ? input_grad(conv, b.grad(), b.saved(1)) : Tensor(),
                          b.needs(1) ? weight_grad(conv, b.saved(0), b.grad()) : Tensor(),
                          b.needs(2) ? sum(b.grad(), {0, 2, 3}) : Tensor()};
                });
}

/// dx for y = convolve(x, weight); as a forward pass, conv_transpose2d.
Tensor input_grad(const Convolution& conv, const Tensor& dy, const Tensor& weight) {
  Tensor dx = empty({conv.images, conv.groups * conv.in_channels, conv.h.in, conv.w.in}, dy.dtype());
  const Tensor from = ops::contiguous_values(dy), w = ops::contiguous_values(weight);
  if (ops::cuts_patches(conv))
    ops::patch_convolution_input_grad(conv, from, w, dx);
  else
    dispatch_floating(dy.dtype(), "conv_transpose2d", [&]<class T>() {
      kernels::convolution_input_grad(conv, from.data<T>(), w.data<T>(), dx.mutable_data<T>());
    });
  return record("conv_transpose2d", dx, {dy, weight},
                {saved_if(weight.requires_grad(), dy), saved_if(dy.requires_grad(), weight)},
                [conv](const Backward& b) -> Grads {
                  return {b.needs(0) ? convolve(conv, b.grad(), b.saved(1), {}) : Tensor(),
                          b.needs(1) ? weight_grad(conv, b.grad(), b.saved(0)) : Tensor()};
                });
}

/// dweight for y = convolve(x, weight).
Tensor weight_grad(const Convolution& conv, const Tensor& x, const Tensor& dy) {
  Tensor dw = empty({conv.groups * conv.out_channels, conv.in_channels, conv.h.kernel, conv.w.kernel}, x.dtype());
  const Tensor from = ops::contiguous_values(x), grad = ops::contiguous_values(dy);
  if (ops::cuts_patches(conv))
    ops::patch_convolution_weight_grad(conv, from, grad, dw);
  else
    dispatch_floating(x.dtype(), "conv2d", [&]<class T>() {
      kernels::convolution_weight_grad(conv, from.data<T>(), grad.data<T>(), dw.mutable_data<T>());
    });
  return record("conv2d_weight_grad", dw, {x, dy}, {saved_if(dy.requires_grad(), x), saved_if(x.requires_grad(), dy)},
                [conv](const Backward& b) -> Grads {
                  return {b.needs(0) ? input_grad(conv, b.saved(1), b.grad()) : Tensor(),
                          b.needs(1) ? convolve(conv, b.saved(0), b.grad(), {}) : Tensor()};
                });
}

/// The weight as that of images, and what is checked of all convolutions. `channels` is the dim of the weight that the input's
/// channels are in, over all groups.
void check_operands(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, int dims, int64_t groups,
                    int64_t channels, int64_t out_channels) {
  ops::check_same_dtype(op, x, weight);
  ONESTEP_CHECK(ShapeError, x.size(-dims - 1) == channels, op, ": input ", x.shape(), " does not fit weight ", weight.shape(),
                " with groups=", groups, " (needs ", channels, " channels)");
  if (!bias.defined()) return;
  ops::check_same_dtype(op, x, bias);
  ONESTEP_CHECK(ShapeError, bias.shape() == Shape(out_channels), op, ": bias ", bias.shape(), " does not fit weight ",
                weight.shape(), " (needs [", out_channels, "])");
}

void check_weight(const char* op, const Tensor& weight, int dims, int64_t groups) {
  ONESTEP_CHECK(ShapeError, weight.dim() == dims + 2, op, ": weight must have ", dims + 2, " dims: got ", weight.shape());
  for (int i = 2; i < weight.dim(); ++i)
    ONESTEP_CHECK(ShapeError, weight.shape()[i] > 0, op, ": weight ", weight.shape(), " has an empty kernel");
  ONESTEP_CHECK(ShapeError, groups > 0 && weight.shape()[0] % groups == 0, op, ": groups=", groups,
                " does not divide dim 0 of weight ", weight.shape());
}

Tensor as_image_weight(const Tensor& weight) { return weight.dim() == 3 ? unsqueeze(weight, 2) : weight; }

Tensor convolve(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride,
                const Padding& padding, const Shape& dilation, int64_t groups, int dims) {
  const Tensor images = ops::as_images(op, x, dims);
  check_weight(op, weight, dims, groups);
  const int64_t out_channels = weight.shape()[0];
  check_operands(op, x, weight, bias, dims, groups, weight.shape()[1] * groups, out_channels);
  ops::Windows2d windows;
  for (int i = 0; i < dims; ++i) {
    WindowDim& d = windows.of(dims, i);
    d = {.in = x.size(i - dims),
         .out = 0,
         .kernel = weight.size(i - dims),
         .stride = ops::of_dim(op, "stride", stride, dims, i, 1),
         .padding = padding.same ? 0 : ops::of_dim(op, "padding", padding.sizes, dims, i, 0),
         .dilation = ops::of_dim(op, "dilation", dilation, dims, i, 1)};
    if (padding.same) {
      ONESTEP_CHECK(ShapeError, d.stride == 1, op, ": padding \"same\" needs stride 1: got ", stride);
      d.padding = d.dilation * (d.kernel - 1) / 2;
      d.out = d.in;
    } else {
      d.out = ops::windows(d);
      ONESTEP_CHECK(ShapeError, d.out > 0, op, ": the kernel spans ", d.dilation * (d.kernel - 1) + 1,
                    " places, but the padded input has ", d.in + 2 * d.padding, " (dim ", i - dims, " of input ", x.shape(),
                    ")");
    }
  }
  const Convolution conv = {images.shape()[0], groups, weight.shape()[1], out_channels / groups, windows.h, windows.w};
  const Tensor y = convolve(conv, ops::wide(images), ops::wide(as_image_weight(weight)), ops::wide(bias));
  return ops::like_input(to(y, x.dtype()), x, dims);
}

Tensor convolve_transposed(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride,
                           const Shape& padding, const Shape& output_padding, int64_t groups, const Shape& dilation, int dims) {
  const Tensor images = ops::as_images(op, x, dims);
  check_weight(op, weight, dims, groups);
  const int64_t out_channels = weight.shape()[1] * groups;
  check_operands(op, x, weight, bias, dims, groups, weight.shape()[0], out_channels);
  ops::Windows2d windows;
  for (int i = 0; i < dims; ++i) {
    WindowDim& d = windows.of(dims, i);
    d = {.in = 0,
         .out = x.size(i - dims),
         .kernel = weight.size(i - dims),
         .stride = ops::of_dim(op, "stride", stride, dims, i, 1),
         .padding = ops::of_dim(op, "padding", padding, dims, i, 0),
         .dilation = ops::of_dim(op, "dilation", dilation, dims, i, 1)};
    const int64_t added = ops::of_dim(op, "output_padding", output_padding, dims, i, 0);
    ONESTEP_CHECK(ShapeError, added < std::max(d.stride, d.dilation), op, ": output_padding ", output_padding,
                  " must be smaller than stride ", stride, " or dilation ", dilation);
    d.in = (d.out - 1) * d.stride - 2 * d.padding + d.dilation * (d.kernel - 1) + added + 1;
    ONESTEP_CHECK(ShapeError, d.out > 0 && d.in > 0, op, ": nothing is left of dim ", i - dims, " of input ", x.shape(),
                  " (the output would have ", d.in, " places)");
  }
  const Convolution conv = {images.shape()[0], groups, weight.shape()[1], weight.shape()[0] / groups, windows.h, windows.w};
  Tensor y = input_grad(conv, ops::wide(images), ops::wide(as_image_weight(weight)));
  if (bias.defined()) y = add(y, reshape(ops::wide(bias), {out_channels, 1, 1}));
  return ops::like_input(to(y, x.dtype()), x, dims);
}

using ops::autocast_operand;

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, const Padding& padding,
              const Shape& dilation, int64_t groups) {
  return convolve("conv1d", autocast_operand(x), autocast_operand(weight), autocast_operand(bias), stride, padding, dilation,
                  groups, 1);
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, const Padding& padding,
              const Shape& dilation, int64_t groups) {
  return convolve("conv2d", autocast_operand(x), autocast_operand(weight), autocast_operand(bias), stride, padding, dilation,
                  groups, 2);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, const Shape& padding,
                        const Shape& output_padding, int64_t groups, const Shape& dilation) {
  return convolve_transposed("conv_transpose1d", autocast_operand(x), autocast_operand(weight), autocast_operand(bias), stride,
                             padding, output_padding, groups, dilation, 1);
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Shape& stride, const Shape& padding,
                        const Shape& output_padding, int64_t groups, const Shape& dilation) {
  return convolve_transposed("conv_transpose2d", autocast_operand(x), autocast_operand(weight), autocast_operand(bias), stride,
                             padding, output_padding, groups, dilation, 2);
}

}  // namespace onestep
