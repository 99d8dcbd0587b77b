#pragma once
// Pooling as modules; what they compute is documented in autograd/ops_conv.h.
#include "autograd/ops_conv.h"
#include "nn/module.h"

namespace onestep::nn {

/// What the pools of fixed windows share; an empty stride is the kernel's size.
class Pool : public Layer {
 protected:
  Pool(const Shape& kernel_size, const Shape& stride, const Shape& padding, bool ceil_mode)
      : kernel_(kernel_size), stride_(stride.empty() ? kernel_size : stride), padding_(padding), ceil_mode_(ceil_mode) {}

  Shape kernel_, stride_, padding_;
  bool ceil_mode_;
};

class MaxPool : public Pool {
 public:
  MaxPool(const Shape& kernel_size, const Shape& stride = {}, const Shape& padding = 0, const Shape& dilation = 1,
          bool ceil_mode = false)
      : Pool(kernel_size, stride, padding, ceil_mode), dilation_(dilation) {}
  std::string extra_repr() const override;

 protected:
  Shape dilation_;
};

/// torch.nn.MaxPool1d
class MaxPool1d : public MaxPool {
 public:
  using MaxPool::MaxPool;
  Tensor forward(const Tensor& x) const override { return max_pool1d(x, kernel_, stride_, padding_, dilation_, ceil_mode_); }
  std::string name() const override { return "MaxPool1d"; }
};

/// torch.nn.MaxPool2d
class MaxPool2d : public MaxPool {
 public:
  using MaxPool::MaxPool;
  Tensor forward(const Tensor& x) const override { return max_pool2d(x, kernel_, stride_, padding_, dilation_, ceil_mode_); }
  std::string name() const override { return "MaxPool2d"; }
};

/// torch.nn.AvgPool1d
class AvgPool1d : public Pool {
 public:
  AvgPool1d(const Shape& kernel_size, const Shape& stride = {}, const Shape& padding = 0, bool ceil_mode = false,
            bool count_include_pad = true)
      : Pool(kernel_size, stride, padding, ceil_mode), count_include_pad_(count_include_pad) {}
  Tensor forward(const Tensor& x) const override {
    return avg_pool1d(x, kernel_, stride_, padding_, ceil_mode_, count_include_pad_);
  }
  std::string name() const override { return "AvgPool1d"; }
  std::string extra_repr() const override;

 private:
  bool count_include_pad_;
};

/// torch.nn.AvgPool2d
class AvgPool2d : public Pool {
 public:
  AvgPool2d(const Shape& kernel_size, const Shape& stride = {}, const Shape& padding = 0, bool ceil_mode = false,
            bool count_include_pad = true, std::optional<int64_t> divisor_override = {})
      : Pool(kernel_size, stride, padding, ceil_mode), count_include_pad_(count_include_pad), divisor_(divisor_override) {}
  Tensor forward(const Tensor& x) const override {
    return avg_pool2d(x, kernel_, stride_, padding_, ceil_mode_, count_include_pad_, divisor_);
  }
  std::string name() const override { return "AvgPool2d"; }
  std::string extra_repr() const override;

 private:
  bool count_include_pad_;
  std::optional<int64_t> divisor_;
};

/// What the adaptive pools share; an output size of -1 (None in PyTorch) keeps that of the input.
class AdaptivePool : public Layer {
 public:
  explicit AdaptivePool(const Shape& output_size) : output_size_(output_size) {}
  std::string extra_repr() const override;

 protected:
  Shape output_size_;
};

/// torch.nn.AdaptiveAvgPool1d
class AdaptiveAvgPool1d : public AdaptivePool {
 public:
  using AdaptivePool::AdaptivePool;
  Tensor forward(const Tensor& x) const override { return adaptive_avg_pool1d(x, output_size_); }
  std::string name() const override { return "AdaptiveAvgPool1d"; }
};

/// torch.nn.AdaptiveAvgPool2d
class AdaptiveAvgPool2d : public AdaptivePool {
 public:
  using AdaptivePool::AdaptivePool;
  Tensor forward(const Tensor& x) const override { return adaptive_avg_pool2d(x, output_size_); }
  std::string name() const override { return "AdaptiveAvgPool2d"; }
};

/// torch.nn.AdaptiveMaxPool1d
class AdaptiveMaxPool1d : public AdaptivePool {
 public:
  using AdaptivePool::AdaptivePool;
  Tensor forward(const Tensor& x) const override { return adaptive_max_pool1d(x, output_size_); }
  std::string name() const override { return "AdaptiveMaxPool1d"; }
};

/// torch.nn.AdaptiveMaxPool2d
class AdaptiveMaxPool2d : public AdaptivePool {
 public:
  using AdaptivePool::AdaptivePool;
  Tensor forward(const Tensor& x) const override { return adaptive_max_pool2d(x, output_size_); }
  std::string name() const override { return "AdaptiveMaxPool2d"; }
};

}  // namespace onestep::nn
