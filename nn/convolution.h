#pragma once
// Convolutions as modules; what they compute is documented in autograd/ops_conv.h.
#include "autograd/ops_conv.h"
#include "autograd/random/generator.h"
#include "nn/module.h"

namespace onestep::nn {

/// What the convolutions share: weight and bias, drawn as PyTorch draws them, and what is printed.
class Convolution : public Layer {
 public:
  std::string extra_repr() const override;
  void visit(Visitor& visitor) override;

  Tensor weight;  // [out, in / groups, kernel...], transposed [in, out / groups, kernel...]
  Tensor bias;    // [out], or undefined

 protected:
  struct Sizes {
    int64_t in_channels, out_channels;
    Shape kernel, stride;
    Padding padding;
    Shape output_padding, dilation;
    int64_t groups;
    bool bias;
    PadMode padding_mode = PadMode::constant;
  };
  /// A size of `sizes` that is one number stands for all `dims`. Throws ShapeError, naming the module, unless the channels are
  /// multiples of groups.
  Convolution(const char* name, int dims, bool transposed, const Sizes& sizes, Generator& generator);
  /// x with the padding that is not zeros, and what the convolution then has to pad.
  Tensor padded(const Tensor& x) const;
  Padding zeros() const { return sizes_.padding_mode == PadMode::constant ? sizes_.padding : Padding(0); }

  Sizes sizes_;
};

/// y = conv1d(x, weight, bias): [N, in, L] or [in, L] -> [N, out, L'] (torch.nn.Conv1d). Draws the weight within +-1 / sqrt(in
/// / groups * kernel_size) (kaiming_uniform_ with a = sqrt(5)), then the bias within the same bound. `padding_mode` is what the
/// padding holds, `constant` being zeros.
class Conv1d : public Convolution {
 public:
  Conv1d(int64_t in_channels, int64_t out_channels, const Shape& kernel_size, const Shape& stride = 1,
         const Padding& padding = 0, const Shape& dilation = 1, int64_t groups = 1, bool with_bias = true,
         PadMode padding_mode = PadMode::constant, Generator& generator = default_generator())
      : Convolution("Conv1d", 1, false,
                    {in_channels, out_channels, kernel_size, stride, padding, 0, dilation, groups, with_bias, padding_mode},
                    generator) {}

  Tensor forward(const Tensor& x) const override {
    return conv1d(padded(x), weight, bias, sizes_.stride, zeros(), sizes_.dilation, sizes_.groups);
  }
  std::string name() const override { return "Conv1d"; }
};

/// y = conv2d(x, weight, bias): [N, in, H, W] or [in, H, W] -> [N, out, H', W'] (torch.nn.Conv2d); drawn as Conv1d.
class Conv2d : public Convolution {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, const Shape& kernel_size, const Shape& stride = 1,
         const Padding& padding = 0, const Shape& dilation = 1, int64_t groups = 1, bool with_bias = true,
         PadMode padding_mode = PadMode::constant, Generator& generator = default_generator())
      : Convolution("Conv2d", 2, false,
                    {in_channels, out_channels, kernel_size, stride, padding, 0, dilation, groups, with_bias, padding_mode},
                    generator) {}

  Tensor forward(const Tensor& x) const override {
    return conv2d(padded(x), weight, bias, sizes_.stride, zeros(), sizes_.dilation, sizes_.groups);
  }
  std::string name() const override { return "Conv2d"; }
};

/// y = conv_transpose1d(x, weight, bias): [N, in, L] or [in, L] -> [N, out, L'] (torch.nn.ConvTranspose1d).
class ConvTranspose1d : public Convolution {
 public:
  ConvTranspose1d(int64_t in_channels, int64_t out_channels, const Shape& kernel_size, const Shape& stride = 1,
                  const Shape& padding = 0, const Shape& output_padding = 0, int64_t groups = 1, bool with_bias = true,
                  const Shape& dilation = 1, Generator& generator = default_generator())
      : Convolution("ConvTranspose1d", 1, true,
                    {in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation, groups, with_bias},
                    generator) {}

  Tensor forward(const Tensor& x) const override {
    return conv_transpose1d(x, weight, bias, sizes_.stride, sizes_.padding.sizes, sizes_.output_padding, sizes_.groups,
                            sizes_.dilation);
  }
  std::string name() const override { return "ConvTranspose1d"; }
};

/// y = conv_transpose2d(x, weight, bias): [N, in, H, W] or [in, H, W] -> [N, out, H', W'] (torch.nn.ConvTranspose2d).
class ConvTranspose2d : public Convolution {
 public:
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, const Shape& kernel_size, const Shape& stride = 1,
                  const Shape& padding = 0, const Shape& output_padding = 0, int64_t groups = 1, bool with_bias = true,
                  const Shape& dilation = 1, Generator& generator = default_generator())
      : Convolution("ConvTranspose2d", 2, true,
                    {in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation, groups, with_bias},
                    generator) {}

  Tensor forward(const Tensor& x) const override {
    return conv_transpose2d(x, weight, bias, sizes_.stride, sizes_.padding.sizes, sizes_.output_padding, sizes_.groups,
                            sizes_.dilation);
  }
  std::string name() const override { return "ConvTranspose2d"; }
};

}  // namespace onestep::nn
