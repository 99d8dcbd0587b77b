#pragma once
// Padding as modules; what they compute is documented in autograd/ops_conv.h.
#include <optional>
#include <vector>

#include "autograd/ops_conv.h"
#include "nn/module.h"

namespace onestep::nn {

/// pad() of the last one or two dims: the places before and after each, from the last dim on, or one number for all.
class Pad : public Layer {
 public:
  Tensor forward(const Tensor& x) const override { return pad(x, padding_, mode_, value_.value_or(0)); }
  std::string name() const override { return name_; }
  std::string extra_repr() const override;

 protected:
  /// Throws ShapeError unless there is one number or two a dim.
  Pad(const char* name, int dims, const Shape& padding, PadMode mode = PadMode::constant, std::optional<double> value = {});

 private:
  std::vector<int64_t> padding_;
  const char* name_;
  PadMode mode_;
  std::optional<double> value_;  ///< What is printed where it was given.
};

/// torch.nn.ZeroPad2d
class ZeroPad2d : public Pad {
 public:
  explicit ZeroPad2d(const Shape& padding) : Pad("ZeroPad2d", 2, padding) {}
};

/// torch.nn.ConstantPad1d
class ConstantPad1d : public Pad {
 public:
  ConstantPad1d(const Shape& padding, double value) : Pad("ConstantPad1d", 1, padding, PadMode::constant, value) {}
};

/// torch.nn.ConstantPad2d
class ConstantPad2d : public Pad {
 public:
  ConstantPad2d(const Shape& padding, double value) : Pad("ConstantPad2d", 2, padding, PadMode::constant, value) {}
};

/// torch.nn.ReflectionPad1d
class ReflectionPad1d : public Pad {
 public:
  explicit ReflectionPad1d(const Shape& padding) : Pad("ReflectionPad1d", 1, padding, PadMode::reflect) {}
};

/// torch.nn.ReflectionPad2d
class ReflectionPad2d : public Pad {
 public:
  explicit ReflectionPad2d(const Shape& padding) : Pad("ReflectionPad2d", 2, padding, PadMode::reflect) {}
};

/// torch.nn.ReplicationPad1d
class ReplicationPad1d : public Pad {
 public:
  explicit ReplicationPad1d(const Shape& padding) : Pad("ReplicationPad1d", 1, padding, PadMode::replicate) {}
};

/// torch.nn.ReplicationPad2d
class ReplicationPad2d : public Pad {
 public:
  explicit ReplicationPad2d(const Shape& padding) : Pad("ReplicationPad2d", 2, padding, PadMode::replicate) {}
};

}  // namespace onestep::nn
