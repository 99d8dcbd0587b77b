#pragma once
// Windows of images as columns and back, as modules; what they compute is documented in autograd/ops_conv.h.
#include "autograd/ops_conv.h"
#include "nn/module.h"

namespace onestep::nn {

/// What the two have in common: their windows, and what is printed.
class Columns : public Layer {
 public:
  std::string extra_repr() const override {
    return "kernel_size=" + text(kernel_size_) + ", dilation=" + text(dilation_) + ", padding=" + text(padding_) +
           ", stride=" + text(stride_);
  }

 protected:
  Columns(const Shape& kernel_size, const Shape& dilation, const Shape& padding, const Shape& stride)
      : kernel_size_(kernel_size), dilation_(dilation), padding_(padding), stride_(stride) {}
  /// A number, or a tuple of them.
  static std::string text(const Shape& sizes) { return sizes.rank() == 1 ? std::to_string(sizes[0]) : python_repr(sizes); }

  Shape kernel_size_, dilation_, padding_, stride_;
};

/// im2col(x, kernel_size, dilation, padding, stride) (torch.nn.Unfold).
class Unfold : public Columns {
 public:
  explicit Unfold(const Shape& kernel_size, const Shape& dilation = 1, const Shape& padding = 0, const Shape& stride = 1)
      : Columns(kernel_size, dilation, padding, stride) {}
  Tensor forward(const Tensor& x) const override { return im2col(x, kernel_size_, dilation_, padding_, stride_); }
  std::string name() const override { return "Unfold"; }
};

/// col2im(x, output_size, kernel_size, dilation, padding, stride) (torch.nn.Fold).
class Fold : public Columns {
 public:
  Fold(const Shape& output_size, const Shape& kernel_size, const Shape& dilation = 1, const Shape& padding = 0,
       const Shape& stride = 1)
      : Columns(kernel_size, dilation, padding, stride), output_size_(output_size) {}
  Tensor forward(const Tensor& x) const override { return col2im(x, output_size_, kernel_size_, dilation_, padding_, stride_); }
  std::string name() const override { return "Fold"; }
  std::string extra_repr() const override { return "output_size=" + text(output_size_) + ", " + Columns::extra_repr(); }

 private:
  Shape output_size_;
};

}  // namespace onestep::nn
