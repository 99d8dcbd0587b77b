#include "nn/convolution.h"

#include <cmath>
#include <sstream>

#include "nn/init.h"

namespace onestep::nn {
namespace {

/// One number for all dims as one a dim, as PyTorch keeps and prints it.
Shape of_dims(const char* name, const char* what, const Shape& sizes, int dims) {
  ONESTEP_CHECK(ShapeError, sizes.rank() == 1 || sizes.rank() == dims, name, ": ", what, " ", sizes, " needs one number or ",
                dims);
  return sizes.rank() == dims ? sizes : Shape::filled(dims, sizes[0]);
}

const char* mode_name(PadMode mode) {
  return mode == PadMode::reflect ? "reflect" : mode == PadMode::replicate ? "replicate" : "circular";
}

}  // namespace

Convolution::Convolution(const char* name, int dims, bool transposed, const Sizes& sizes, Generator& generator)
    : sizes_(sizes) {
  ONESTEP_CHECK(ShapeError,
                sizes.groups > 0 && sizes.in_channels > 0 && sizes.out_channels > 0 && sizes.in_channels % sizes.groups == 0 &&
                    sizes.out_channels % sizes.groups == 0,
                name, ": channels must be positive multiples of groups: in_channels=", sizes.in_channels,
                ", out_channels=", sizes.out_channels, ", groups=", sizes.groups);
  sizes_.kernel = of_dims(name, "kernel_size", sizes.kernel, dims);
  sizes_.stride = of_dims(name, "stride", sizes.stride, dims);
  sizes_.padding.sizes = of_dims(name, "padding", sizes.padding.sizes, dims);
  sizes_.output_padding = of_dims(name, "output_padding", sizes.output_padding, dims);
  sizes_.dilation = of_dims(name, "dilation", sizes.dilation, dims);
  const int64_t first = transposed ? sizes.in_channels : sizes.out_channels;
  const int64_t second = (transposed ? sizes.out_channels : sizes.in_channels) / sizes.groups;
  Shape shape = {first, second};
  for (const int64_t size : sizes_.kernel) shape.push_back(size);
  weight = empty(shape).requires_grad_();
  init::kaiming_uniform_(weight, std::sqrt(5.0), generator);
  if (!sizes.bias) return;
  bias = empty(sizes.out_channels).requires_grad_();
  const int64_t fan_in = second * sizes_.kernel.numel();
  const double bound = fan_in > 0 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0.0;
  init::uniform_(bias, -bound, bound, generator);
}

Tensor Convolution::padded(const Tensor& x) const {
  if (sizes_.padding_mode == PadMode::constant) return x;
  std::vector<int64_t> sides;
  for (int d = sizes_.kernel.rank() - 1; d >= 0; --d) {
    const int64_t both = sizes_.padding.same ? sizes_.dilation[d] * (sizes_.kernel[d] - 1) : 2 * sizes_.padding.sizes[d];
    sides.insert(sides.end(), {both / 2, both - both / 2});
  }
  return pad(x, sides, sizes_.padding_mode);
}

std::string Convolution::extra_repr() const {
  const int dims = sizes_.kernel.rank();
  std::ostringstream text;
  text << sizes_.in_channels << ", " << sizes_.out_channels << ", kernel_size=" << python_repr(sizes_.kernel)
       << ", stride=" << python_repr(sizes_.stride);
  const Padding& padding = sizes_.padding;
  if (padding.same) text << ", padding=same";
  if (!padding.same && padding.sizes != Shape::filled(dims, 0)) text << ", padding=" << python_repr(padding.sizes);
  if (sizes_.dilation != Shape::filled(dims, 1)) text << ", dilation=" << python_repr(sizes_.dilation);
  if (sizes_.output_padding != Shape::filled(dims, 0)) text << ", output_padding=" << python_repr(sizes_.output_padding);
  if (sizes_.groups != 1) text << ", groups=" << sizes_.groups;
  if (!bias.defined()) text << ", bias=False";
  if (sizes_.padding_mode != PadMode::constant) text << ", padding_mode=" << mode_name(sizes_.padding_mode);
  return text.str();
}

void Convolution::visit(Visitor& visitor) {
  visitor.parameter("weight", weight);
  visitor.parameter("bias", bias);
}

}  // namespace onestep::nn
