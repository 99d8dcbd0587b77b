// The normalisations of images, each layer_norm over rows of other elements.
#include "autograd/ops/reduce.h"
#include "autograd/ops/vectorized.h"
#include "autograd/ops_conv.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

void check_input(const char* op, const Tensor& x) {
  ops::check_floating(op, x);
  ONESTEP_CHECK(ShapeError, x.dim() >= 2, op, ": needs [N, C, ...]: got ", x.shape());
}

/// Throws unless `x` is undefined or fits the channels of the input.
void check_per_channel(const char* op, const char* what, const Tensor& input, const Tensor& x) {
  if (!x.defined()) return;
  ops::check_parameter_dtype(op, input, x);
  ONESTEP_CHECK(ShapeError, x.shape() == Shape(input.shape()[1]), op, ": ", what, " ", x.shape(), " does not fit input ",
                input.shape(), " (needs [", input.shape()[1], "])");
}

void check_statistics(const char* op, const Tensor& x, const Tensor& running_mean, const Tensor& running_var, bool required) {
  check_per_channel(op, "running_mean", x, running_mean);
  check_per_channel(op, "running_var", x, running_var);
  ONESTEP_CHECK(ConfigError, running_mean.defined() == running_var.defined() && (running_mean.defined() || !required), op,
                ": needs running_mean and running_var", required ? " outside training" : ", or neither");
}

/// y weight + bias in one pass, weight and bias of the places along `dim`.
Tensor scaled_and_shifted(const Tensor& y, int dim, const Tensor& weight, const Tensor& bias) {
  const Tensor rows = ops::contiguous_values(y), scales = ops::contiguous_values(weight), shifts = ops::contiguous_values(bias);
  const ops::Blocks b = ops::blocks_of(y.shape(), dim, dim);
  Tensor z = empty(y.shape(), y.dtype());
  dispatch_floating(y.dtype(), "scale", [&]<class T>() {
    const T *const from = rows.data<T>(), *const w = scales.data<T>(), *const shift = shifts.data<T>();
    T* const to = z.mutable_data<T>();
    kernels::parallel_for(b.outer * b.reduced, 0.3 * static_cast<double>(b.inner), [=](int64_t i, int64_t end) {
      for (; i < end; ++i) {
        const int64_t channel = i % b.reduced, at = i * b.inner;
        ops::vector_loop([scale = w[channel], more = shift[channel]](T v) { return v * scale + more; }, from + at, to + at,
                         b.inner);
      }
    });
  });
  return z;
}

/// y weight + bias per channel, the places along `dim`, as `dtype`; either may be undefined.
Tensor scale_channels(const Tensor& y, int dim, const Tensor& weight, const Tensor& bias, DType dtype) {
  Shape shape = Shape::filled(y.dim() - dim, 1);
  shape[0] = y.shape()[dim];
  const auto per_channel = [&shape](const Tensor& x) { return x.defined() ? reshape(ops::wide(x), shape) : x; };
  const Tensor w = per_channel(weight), shift = per_channel(bias);
  if (!weight.defined()) return to(bias.defined() ? add(y, shift) : y, dtype);
  if (!bias.defined()) return to(mul(y, w), dtype);
  const Tensor z = record("scale", scaled_and_shifted(y, dim, w, shift), {y, w, shift}, {y, w}, [](const Backward& b) -> Grads {
    const auto grad = [&b](size_t i) { return ops::grad_of(b, i, [&] { return mul(b.grad(), b.saved(1 - i)); }); };
    return {grad(0), grad(1), ops::grad_of(b, 2, [&] { return b.grad(); })};
  });
  return to(z, dtype);
}

/// Each row to mean 0 and variance 1, in the shape of x.
Tensor normalize_rows(const Tensor& x, const Shape& rows, double eps) {
  return reshape(layer_norm(reshape(x, rows), rows[1], {}, {}, eps), x.shape());
}

/// running = (1 - momentum) running + momentum values
void update(const Tensor& running, const Tensor& values, double momentum) {
  if (running.defined()) copy_(running, add(mul(ops::wide(running), 1 - momentum), mul(values, momentum)));
}

/// batch_norm outside training.
Tensor with_statistics(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                       double eps) {
  const Tensor rstd = rsqrt(add(ops::wide(var), eps)), scale = weight.defined() ? mul(rstd, ops::wide(weight)) : rstd;
  const Tensor shift = neg(mul(ops::wide(mean), scale));
  return scale_channels(ops::wide(x), 1, scale, bias.defined() ? add(shift, ops::wide(bias)) : shift, x.dtype());
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, bool training, double momentum, double eps) {
  check_input("batch_norm", x);
  check_per_channel("batch_norm", "weight", x, weight);
  check_per_channel("batch_norm", "bias", x, bias);
  check_statistics("batch_norm", x, running_mean, running_var, !training);
  if (!training) return with_statistics(x, running_mean, running_var, weight, bias, eps);
  const int64_t channels = x.shape()[1], count = x.numel() / std::max<int64_t>(channels, 1);
  ONESTEP_CHECK(ShapeError, count != 1, "batch_norm: needs more than one value a channel to train: got ", x.shape());
  const Tensor by_channel = contiguous(transpose(ops::wide(x), 0, 1));
  if (count > 0) {
    const NoGradGuard no_grad;
    const Tensor rows = reshape(by_channel, {channels, count});
    update(running_mean, mean(rows, {1}), momentum);
    update(running_var, var(rows, {1}), momentum);
  }
  return transpose(scale_channels(normalize_rows(by_channel, {channels, count}, eps), 0, weight, bias, x.dtype()), 0, 1);
}

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  check_input("group_norm", x);
  const int64_t channels = x.shape()[1], rows = x.shape()[0] * num_groups;
  ONESTEP_CHECK(ShapeError, num_groups > 0 && channels % num_groups == 0, "group_norm: num_groups=", num_groups,
                " does not divide the channels of input ", x.shape());
  check_per_channel("group_norm", "weight", x, weight);
  check_per_channel("group_norm", "bias", x, bias);
  return scale_channels(normalize_rows(ops::wide(x), {rows, x.numel() / std::max<int64_t>(rows, 1)}, eps), 1, weight, bias,
                        x.dtype());
}

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                     const Tensor& bias, bool use_input_stats, double momentum, double eps) {
  check_input("instance_norm", x);
  check_per_channel("instance_norm", "weight", x, weight);
  check_per_channel("instance_norm", "bias", x, bias);
  check_statistics("instance_norm", x, running_mean, running_var, !use_input_stats);
  if (!use_input_stats) return with_statistics(x, running_mean, running_var, weight, bias, eps);
  const int64_t rows = x.shape()[0] * x.shape()[1], count = x.numel() / std::max<int64_t>(rows, 1);
  ONESTEP_CHECK(ShapeError, count != 1, "instance_norm: needs more than one element a channel: got ", x.shape());
  if (count > 0 && rows > 0 && running_mean.defined()) {
    const NoGradGuard no_grad;
    const Tensor planes = reshape(ops::wide(x), {x.shape()[0], x.shape()[1], count});
    update(running_mean, mean(planes, {0, 2}), momentum);
    update(running_var, mean(var(planes, {2}), {0}), momentum);
  }
  return scale_channels(normalize_rows(ops::wide(x), {rows, count}, eps), 1, weight, bias, x.dtype());
}

}  // namespace onestep
