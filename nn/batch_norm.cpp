#include "nn/batch_norm.h"

#include <sstream>

#include "autograd/ops_conv.h"
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"

namespace onestep::nn {

RunningNorm::RunningNorm(int64_t num_features, double eps, std::optional<double> momentum, bool affine,
                         bool track_running_stats, bool with_bias)
    : num_features_(num_features), eps_(eps), momentum_(momentum) {
  if (affine) weight = ones(num_features).requires_grad_();
  if (affine && with_bias) bias = zeros(num_features).requires_grad_();
  if (!track_running_stats) return;
  running_mean = zeros(num_features);
  running_var = ones(num_features);
  num_batches_tracked = zeros(Shape(), DType::int64);
}

double RunningNorm::count_batch() const {
  if (num_batches_tracked.defined()) add_(num_batches_tracked, 1);
  if (momentum_) return *momentum_;
  return num_batches_tracked.defined() ? 1.0 / num_batches_tracked.item() : 0.0;
}

void RunningNorm::check(const Tensor& x, int least, int most, int64_t dim) const {
  ONESTEP_CHECK(ShapeError, x.dim() >= least && x.dim() <= most && x.size(dim) == num_features_, name(), ": needs ", least,
                least < most ? " or " + std::to_string(most) : "", " dims with ", num_features_, " channels: got ", x.shape());
}

std::string RunningNorm::extra_repr() const {
  std::ostringstream text;
  text << num_features_ << ", eps=" << python_repr(eps_) << ", momentum=" << (momentum_ ? python_repr(*momentum_) : "None")
       << ", affine=" << python_repr(weight.defined()) << ", bias=" << python_repr(bias.defined())
       << ", track_running_stats=" << python_repr(running_mean.defined());
  return text.str();
}

void RunningNorm::visit(Visitor& visitor) {
  visitor.parameter("weight", weight);
  visitor.parameter("bias", bias);
  visitor.buffer("running_mean", running_mean);
  visitor.buffer("running_var", running_var);
  visitor.buffer("num_batches_tracked", num_batches_tracked);
}

Tensor BatchNorm::normalize(const Tensor& x) const {
  const double momentum = is_training() ? count_batch() : 0;
  return batch_norm(x, running_mean, running_var, weight, bias, is_training() || !running_mean.defined(), momentum, eps_);
}

Tensor InstanceNorm2d::forward(const Tensor& x) const {
  check(x, 3, 4, -3);
  const Tensor images = x.dim() == 3 ? unsqueeze(x, 0) : x;
  // PyTorch's InstanceNorm2d does not count batches, so that without a momentum its running statistics stay.
  const Tensor y = instance_norm(images, running_mean, running_var, weight, bias, is_training() || !running_mean.defined(),
                                 momentum_.value_or(0), eps_);
  return x.dim() == 3 ? squeeze(y, 0) : y;
}

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, double eps, bool affine, bool with_bias)
    : num_groups_(num_groups), num_channels_(num_channels), eps_(eps) {
  ONESTEP_CHECK(ShapeError, num_groups > 0 && num_channels % num_groups == 0, "GroupNorm: num_groups=", num_groups,
                " does not divide num_channels=", num_channels);
  if (affine) weight = ones(num_channels).requires_grad_();
  if (affine && with_bias) bias = zeros(num_channels).requires_grad_();
}

Tensor GroupNorm::forward(const Tensor& x) const {
  ONESTEP_CHECK(ShapeError, x.dim() >= 2 && x.size(1) == num_channels_, "GroupNorm: needs [N, ", num_channels_, ", ...]: got ",
                x.shape());
  return group_norm(x, num_groups_, weight, bias, eps_);
}

std::string GroupNorm::extra_repr() const {
  std::ostringstream text;
  text << num_groups_ << ", " << num_channels_ << ", eps=" << python_repr(eps_) << ", affine=" << python_repr(weight.defined())
       << ", bias=" << python_repr(bias.defined());
  return text.str();
}

void GroupNorm::visit(Visitor& visitor) {
  visitor.parameter("weight", weight);
  visitor.parameter("bias", bias);
}

}  // namespace onestep::nn
