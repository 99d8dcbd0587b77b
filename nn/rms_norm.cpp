#include "nn/rms_norm.h"

#include <limits>

#include "autograd/operators.h"

namespace onestep::nn {

RMSNorm::RMSNorm(const Shape& normalized_shape, std::optional<double> eps, bool elementwise_affine)
    : normalized_shape_(normalized_shape), eps_(eps) {
  ONESTEP_CHECK(ShapeError, !normalized_shape.empty(), "RMSNorm: normalized_shape needs at least one size");
  if (elementwise_affine) weight = ones(normalized_shape).requires_grad_();
}

Tensor RMSNorm::forward(const Tensor& x) const {
  const int rank = normalized_shape_.rank();
  bool fits = rank <= x.dim();
  Shape dims;
  for (int i = 0; fits && i < rank; ++i) {
    dims.push_back(i - rank);
    fits = normalized_shape_[i] == x.size(i - rank);
  }
  ONESTEP_CHECK(ShapeError, fits, "RMSNorm: normalized_shape ", normalized_shape_, " is not the end of shape ", x.shape());
  const double smallest = x.dtype() == DType::float64 ? std::numeric_limits<double>::epsilon()
                                                      : static_cast<double>(std::numeric_limits<float>::epsilon());
  const Tensor scale = rsqrt(mean(x * x, dims, /*keepdim=*/true) + eps_.value_or(smallest));
  return weight.defined() ? x * scale * weight : x * scale;
}

std::string RMSNorm::extra_repr() const {
  return python_repr(normalized_shape_) + ", eps=" + (eps_ ? python_repr(*eps_) : "None") +
         ", elementwise_affine=" + python_repr(weight.defined());
}

}  // namespace onestep::nn
