// The normalisations of images: of each channel, or of groups of channels, over one image or all.
#include "autograd/ops/batch_norm_planes.h"
#include "autograd/ops/normalize.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops_conv.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"
#include "autograd/vector_loop.h"

namespace onestep {

using ops::Planes;

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

/// Whether a call for each plane of x would take longer than what it computes.
bool has_small_planes(const Tensor& x) { return x.numel() > 0 && ops::blocks_of(x.shape(), 1, 1).inner < Planes::kSmall; }

/// The planes of x in so many groups of channels.
Planes planes_of(const Tensor& x, int64_t groups, bool across_images) {
  const ops::Blocks b = ops::blocks_of(x.shape(), 1, 1);
  return {b.outer, groups, groups > 0 ? b.reduced / groups : 0, b.inner, across_images};
}

/// What is normalised: y = (x - mean) rstd weight + bias, mean and variance being those of `planes`.
struct Normalized {
  Tensor y, mean, variance, rstd;
};

/// weight [C] and bias [C] may be undefined.
Normalized normalized(const Tensor& input, const Planes& planes, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor x = ops::contiguous_values(input), w = ops::rows_or_undefined(weight), shift = ops::rows_or_undefined(bias);
  const DType dtype = x.dtype();
  Normalized r = {empty(x.shape(), dtype), empty(planes.means(), dtype), empty(planes.means(), dtype),
                  empty(planes.means(), dtype)};
  dispatch_floating(dtype, "batch_norm", [&]<class T>() {
    const T *from = x.data<T>(), *scales = ops::data_or_null<T>(w), *shifts = ops::data_or_null<T>(shift);
    T *to = r.y.mutable_data<T>(), *means = r.mean.mutable_data<T>(), *variances = r.variance.mutable_data<T>(),
      *rstds = r.rstd.mutable_data<T>();
    const int64_t n = planes.size;
    const auto count = static_cast<double>(planes.count());
    if (planes.are_small())
      return planes.each_block([&](const ops::ChannelBlock& block) {
        ops::normalize_block(block, from, to, scales, shifts, eps, means, variances, rstds);
      });
    planes.each_mean([&](int64_t i) {
      double sum = 0, squares = 0;
      planes.each_run(i, [&](int64_t plane, int64_t run) { sum += kernels::sum(from + plane * n, run * n); });
      const T mean = means[i] = static_cast<T>(sum / count);
      planes.each_run(i, [&](int64_t plane, int64_t run) {
        squares += kernels::centered_dot(from + plane * n, mean, from + plane * n, mean, run * n);
      });
      variances[i] = static_cast<T>(squares / count);
      const T rstd = rstds[i] = 1 / std::sqrt(variances[i] + static_cast<T>(eps));
      planes.each_plane(i, [&](int64_t plane, int64_t channel) {
        const T scale = scales ? rstd * scales[channel] : rstd, more = shifts ? shifts[channel] : 0;
        vector_loop([=](T v) { return (v - mean) * scale + more; }, to + plane * n, n, from + plane * n);
      });
    });
  });
  return r;
}

/// With h = (x - mean) rstd and g = dy weight: dx = rstd (g - avg(g) - h avg(g h)), dweight = sum(dy h), dbias = sum(dy).
Grads plane_grads(const Backward& b, const Planes& planes) {
  const Tensor x = ops::contiguous_values(b.saved(0)), w = ops::rows_or_undefined(b.saved(1)),
               dy = ops::contiguous_values(b.grad());
  const int64_t n = planes.size, channels = planes.groups * planes.channels;
  Tensor dx = b.needs(0) ? empty(x.shape(), x.dtype()) : Tensor(), dweight = zeros(channels, x.dtype()),
         dbias = dweight.clone();
  dispatch_floating(x.dtype(), "batch_norm", [&]<class T>() {
    const T *from = x.data<T>(), *given = dy.data<T>(), *scales = ops::data_or_null<T>(w), *means = b.saved(2).data<T>(),
            *rstds = b.saved(3).data<T>();
    T *to = dx.defined() ? dx.mutable_data<T>() : nullptr, *dw = dweight.mutable_data<T>(), *db = dbias.mutable_data<T>();
    if (planes.are_small())
      return planes.each_block(
          [&](const ops::ChannelBlock& block) { ops::block_grads(block, from, given, scales, means, rstds, to, dw, db); });
    Tensor sums = empty({2, planes.images * channels}, x.dtype());  // of dy and of dy h, of each plane
    T *dys = sums.mutable_data<T>(), *dyhs = dys + planes.images * channels;
    planes.each_mean([&](int64_t i) {
      const T mean = means[i], rstd = rstds[i];
      double g = 0, gh = 0;
      planes.each_plane(i, [&](int64_t plane, int64_t channel) {
        dys[plane] = kernels::sum(given + plane * n, n);
        dyhs[plane] = rstd * kernels::centered_dot(given + plane * n, T(0), from + plane * n, mean, n);
        g += scales ? dys[plane] * scales[channel] : dys[plane];
        gh += scales ? dyhs[plane] * scales[channel] : dyhs[plane];
      });
      const auto count = static_cast<double>(planes.count());
      const T less = rstd * static_cast<T>(g / count), slope = rstd * rstd * static_cast<T>(gh / count);
      planes.each_plane(i, [&](int64_t plane, int64_t channel) {
        const T scale = scales ? rstd * scales[channel] : rstd;
        const auto gradient = [=](T d, T v) { return d * scale - less - (v - mean) * slope; };
        if (to) vector_loop(gradient, to + plane * n, n, given + plane * n, from + plane * n);
      });
    });
    for (int64_t plane = 0; plane < planes.images * channels; ++plane) {
      dw[plane % channels] += dyhs[plane];
      db[plane % channels] += dys[plane];
    }
  });
  return {dx, b.needs(1) ? dweight : Tensor(), b.needs(2) ? dbias : Tensor()};
}

Grads recorded_plane_grads(const Backward& b, const Planes& planes, double eps) {
  const Tensor x = reshape(b.saved(0), planes.shape()), dy = reshape(b.grad(), planes.shape()), &w = b.saved(1);
  const Tensor weight = w.defined() ? reshape(w, {1, planes.groups, planes.channels, 1}) : w;
  const ops::Standardized s(x, planes.dims(), eps);
  const auto per_channel = [&](size_t i, const auto& all) {
    return b.needs(i) ? reshape(sum(all(), {0, 3}), b.input_shape(i)) : Tensor();
  };
  return {b.needs(0) ? reshape(s.grad(w.defined() ? dy * weight : dy), b.input_shape(0)) : Tensor(),
          per_channel(1, [&] { return dy * s.h; }), per_channel(2, [&] { return dy; })};
}

/// `normalized` as an op: the result has the dtype of x.
Tensor record_normalized(const char* op, const Tensor& x, const Planes& planes, const Tensor& weight, const Tensor& bias,
                         double eps, Normalized* statistics = nullptr) {
  if (is_narrow(x.dtype()))
    return to(record_normalized(op, ops::wide(x), planes, ops::wide(weight), ops::wide(bias), eps, statistics), x.dtype());
  const Normalized r = normalized(x, planes, weight, bias, eps);
  if (statistics) *statistics = r;
  return record(op, r.y, {x, weight, bias}, {x, weight, r.mean, r.rstd}, [planes, eps](const Backward& b) {
    return b.recording() ? recorded_plane_grads(b, planes, eps) : plane_grads(b, planes);
  });
}

/// running = (1 - momentum) running + momentum values
void update(const Tensor& running, const Tensor& values, double momentum) {
  if (running.defined()) copy_(running, add(mul(ops::wide(running), 1 - momentum), mul(values, momentum)));
}

/// The running mean and the running variance, of what is in `r`: a row for each image whose own they are.
void update(const Tensor& running_mean, const Tensor& running_var, const Normalized& r, const Planes& planes, double momentum) {
  if (!running_mean.defined() || planes.count() == 0) return;
  const NoGradGuard no_grad;
  const auto count = static_cast<double>(planes.count());
  const auto per_group = [&](const Tensor& values) { return mean(reshape(values, {-1, planes.groups}), {0}); };
  update(running_mean, per_group(r.mean), momentum);
  update(running_var, per_group(r.variance * (count / (count - 1))), momentum);
}

/// record_normalized, which also updates the running statistics.
Tensor in_training(const char* op, const Tensor& x, const Planes& planes, const Tensor& running_mean, const Tensor& running_var,
                   const Tensor& weight, const Tensor& bias, double momentum, double eps) {
  Normalized r;
  Tensor y = record_normalized(op, x, planes, weight, bias, eps, &r);
  update(running_mean, running_var, r, planes, momentum);
  return y;
}

/// x scale + shift in one pass, scale and shift being [C, ...] as x without its first dim, or [C, 1, ...].
Tensor scaled_values(const Tensor& x, const Tensor& scale, const Tensor& shift) {
  const Tensor rows = ops::contiguous_values(x);
  Tensor y = empty(x.shape(), x.dtype());
  if (y.numel() == 0) return y;
  const int64_t scales = scale.numel(), n = x.numel() / (x.shape()[0] * scales);
  dispatch_floating(x.dtype(), "batch_norm", [&]<class T>() {
    const T *const from = rows.data<T>(), *const w = scale.data<T>(), *const more = shift.data<T>();
    T* const to = y.mutable_data<T>();
    if (n == 1)
      return kernels::parallel_for(x.shape()[0], 0.3 * static_cast<double>(scales), [=](int64_t i, int64_t end) {
        for (; i < end; ++i)
          vector_loop([](T v, T a, T b) { return v * a + b; }, to + i * scales, scales, from + i * scales, w, more);
      });
    kernels::parallel_for(x.shape()[0] * scales, 0.3 * static_cast<double>(n), [=](int64_t i, int64_t end) {
      for (; i < end; ++i)
        vector_loop([a = w[i % scales], b = more[i % scales]](T v) { return v * a + b; }, to + i * n, n, from + i * n);
    });
  });
  return y;
}

/// x scale + shift as an op, scale and shift [C] being those of the channels.
Tensor scale_channels(const char* op, const Tensor& x, const Tensor& scale, const Tensor& shift) {
  Shape channels = Shape::filled(x.dim() - 1, 1), image = x.shape();
  channels[0] = x.shape()[1];
  image.erase(0);
  const auto spread = [&](const Tensor& values) {  // where channels have few places, all of them side by side
    const Tensor given = reshape(values, channels);
    return has_small_planes(x) ? contiguous(expand(given, image)) : given;
  };
  const Tensor w = spread(scale), more = spread(shift);
  return record(op, scaled_values(x, w, more), {x, w, more}, {x, w}, [](const Backward& b) -> Grads {
    const auto grad = [&b](size_t i) { return ops::grad_of(b, i, [&] { return mul(b.grad(), b.saved(1 - i)); }); };
    return {grad(0), grad(1), ops::grad_of(b, 2, [&] { return b.grad(); })};
  });
}

/// batch_norm outside training.
Tensor with_statistics(const Tensor& input, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                       double eps) {
  const Tensor x = ops::wide(input), rstd = rsqrt(add(ops::wide(var), eps));
  const Tensor scale = weight.defined() ? mul(rstd, ops::wide(weight)) : rstd, moved = neg(mul(ops::wide(mean), scale));
  return to(scale_channels("batch_norm", x, scale, bias.defined() ? add(moved, ops::wide(bias)) : moved), input.dtype());
}

/// Channels of x in groups, each normalised over its elements of an image.
Tensor normalize_groups(const char* op, const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias,
                        double eps) {
  if (!has_small_planes(input)) return record_normalized(op, input, planes_of(input, groups, false), weight, bias, eps);
  // The elements of a group lie in a row.
  const Tensor x = ops::wide(input);
  const int64_t channels = x.shape()[1], rows = x.shape()[0] * groups;
  const Tensor in_rows = layer_norm(reshape(x, {rows, x.numel() / rows}), x.numel() / rows, {}, {}, eps);
  const Tensor h = record(op, ops::view_of(in_rows, x.shape(), contiguous_strides(x.shape()), in_rows.offset()), {in_rows}, {},
                          [](const Backward& b) -> Grads { return {reshape(b.grad(), b.input_shape(0))}; });
  if (!weight.defined() && !bias.defined()) return to(h, input.dtype());
  const Tensor scale = weight.defined() ? ops::wide(weight) : ones(channels, x.dtype());
  return to(scale_channels(op, h, scale, bias.defined() ? ops::wide(bias) : zeros(channels, x.dtype())), input.dtype());
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, bool training, double momentum, double eps) {
  check_input("batch_norm", x);
  check_per_channel("batch_norm", "weight", x, weight);
  check_per_channel("batch_norm", "bias", x, bias);
  check_statistics("batch_norm", x, running_mean, running_var, !training);
  if (!training) return with_statistics(x, running_mean, running_var, weight, bias, eps);
  const Planes planes = planes_of(x, x.shape()[1], true);
  ONESTEP_CHECK(ShapeError, planes.count() != 1, "batch_norm: needs more than one value a channel to train: got ", x.shape());
  return in_training("batch_norm", x, planes, running_mean, running_var, weight, bias, momentum, eps);
}

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  check_input("group_norm", x);
  const int64_t channels = x.shape()[1];
  ONESTEP_CHECK(ShapeError, num_groups > 0 && channels % num_groups == 0, "group_norm: num_groups=", num_groups,
                " does not divide the channels of input ", x.shape());
  check_per_channel("group_norm", "weight", x, weight);
  check_per_channel("group_norm", "bias", x, bias);
  return normalize_groups("group_norm", x, num_groups, weight, bias, eps);
}

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                     const Tensor& bias, bool use_input_stats, double momentum, double eps) {
  check_input("instance_norm", x);
  check_per_channel("instance_norm", "weight", x, weight);
  check_per_channel("instance_norm", "bias", x, bias);
  check_statistics("instance_norm", x, running_mean, running_var, !use_input_stats);
  if (!use_input_stats) return with_statistics(x, running_mean, running_var, weight, bias, eps);
  const Planes planes = planes_of(x, x.shape()[1], false);
  ONESTEP_CHECK(ShapeError, planes.count() != 1, "instance_norm: needs more than one element a channel: got ", x.shape());
  if (!running_mean.defined()) return normalize_groups("instance_norm", x, x.shape()[1], weight, bias, eps);
  return in_training("instance_norm", x, planes, running_mean, running_var, weight, bias, momentum, eps);
}

}  // namespace onestep
