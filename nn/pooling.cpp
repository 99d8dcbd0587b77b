#include "nn/pooling.h"

#include <sstream>

namespace onestep::nn {
namespace {

/// As PyTorch prints what it was given: a number or a tuple.
std::string as_given(const Shape& sizes) {
  if (sizes.rank() != 1) return python_repr(sizes);
  return std::to_string(sizes[0]);
}

}  // namespace

std::string MaxPool::extra_repr() const {
  std::ostringstream text;
  text << "kernel_size=" << as_given(kernel_) << ", stride=" << as_given(stride_) << ", padding=" << as_given(padding_)
       << ", dilation=" << as_given(dilation_) << ", ceil_mode=" << python_repr(ceil_mode_);
  return text.str();
}

std::string AvgPool1d::extra_repr() const {
  return "kernel_size=" + python_repr(kernel_) + ", stride=" + python_repr(stride_) + ", padding=" + python_repr(padding_);
}

std::string AvgPool2d::extra_repr() const {
  return "kernel_size=" + as_given(kernel_) + ", stride=" + as_given(stride_) + ", padding=" + as_given(padding_);
}

std::string AdaptivePool::extra_repr() const {
  std::string text;
  for (const int64_t size : output_size_) text += (text.empty() ? "" : ", ") + (size < 0 ? "None" : std::to_string(size));
  return "output_size=" + (output_size_.rank() == 1 ? text : "(" + text + ")");
}

}  // namespace onestep::nn
