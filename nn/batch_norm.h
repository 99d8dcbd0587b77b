#pragma once
// Normalisations of images as modules; what they compute is documented in autograd/ops_conv.h.
#include <optional>

#include "nn/module.h"

namespace onestep::nn {

/// What the normalisations with running statistics share. weight starts at 1, bias at 0, running_mean at 0, running_var at 1;
/// nothing is drawn.
class RunningNorm : public Layer {
 public:
  std::string extra_repr() const override;
  void visit(Visitor& visitor) override;

  Tensor weight, bias;                                    // [num_features], or undefined without affine
  Tensor running_mean, running_var, num_batches_tracked;  // [num_features] twice and int64 [], or undefined

 protected:
  /// Without a momentum the running statistics are the means of those of all batches (None in PyTorch).
  RunningNorm(int64_t num_features, double eps, std::optional<double> momentum, bool affine, bool track_running_stats,
              bool bias);
  /// Counts a batch, and says how far it moves the running statistics.
  double count_batch() const;
  /// Throws ShapeError unless x has one of the ranks `least` to `most` and num_features at `dim`.
  void check(const Tensor& x, int least, int most, int64_t dim) const;

  int64_t num_features_;
  double eps_;
  std::optional<double> momentum_;
};

/// batch_norm(x) with this batch's statistics in training and, where there are some, the running ones in evaluation.
class BatchNorm : public RunningNorm {
 public:
  explicit BatchNorm(int64_t num_features, double eps = 1e-5, std::optional<double> momentum = 0.1, bool affine = true,
                     bool track_running_stats = true, bool with_bias = true)
      : RunningNorm(num_features, eps, momentum, affine, track_running_stats, with_bias) {}

 protected:
  Tensor normalize(const Tensor& x) const;
};

/// [N, C] or [N, C, L] (torch.nn.BatchNorm1d).
class BatchNorm1d : public BatchNorm {
 public:
  using BatchNorm::BatchNorm;
  Tensor forward(const Tensor& x) const override { return check(x, 2, 3, 1), normalize(x); }
  std::string name() const override { return "BatchNorm1d"; }
};

/// [N, C, H, W] (torch.nn.BatchNorm2d).
class BatchNorm2d : public BatchNorm {
 public:
  using BatchNorm::BatchNorm;
  Tensor forward(const Tensor& x) const override { return check(x, 4, 4, 1), normalize(x); }
  std::string name() const override { return "BatchNorm2d"; }
};

/// [N, C, D, H, W] (torch.nn.BatchNorm3d).
class BatchNorm3d : public BatchNorm {
 public:
  using BatchNorm::BatchNorm;
  Tensor forward(const Tensor& x) const override { return check(x, 5, 5, 1), normalize(x); }
  std::string name() const override { return "BatchNorm3d"; }
};

/// instance_norm of [N, C, H, W] or [C, H, W] (torch.nn.InstanceNorm2d).
class InstanceNorm2d : public RunningNorm {
 public:
  explicit InstanceNorm2d(int64_t num_features, double eps = 1e-5, std::optional<double> momentum = 0.1, bool affine = false,
                          bool track_running_stats = false, bool with_bias = true)
      : RunningNorm(num_features, eps, momentum, affine, track_running_stats, with_bias) {}
  Tensor forward(const Tensor& x) const override;
  std::string name() const override { return "InstanceNorm2d"; }
};

/// group_norm(x) of [N, C, ...] (torch.nn.GroupNorm).
class GroupNorm : public Layer {
 public:
  /// weight starts at 1 and bias at 0. Throws ShapeError unless num_groups divides num_channels.
  GroupNorm(int64_t num_groups, int64_t num_channels, double eps = 1e-5, bool affine = true, bool bias = true);

  Tensor forward(const Tensor& x) const override;
  std::string name() const override { return "GroupNorm"; }
  std::string extra_repr() const override;
  void visit(Visitor& visitor) override;

  Tensor weight, bias;  // [num_channels], or undefined without affine

 private:
  int64_t num_groups_, num_channels_;
  double eps_;
};

}  // namespace onestep::nn
