#include "nn/layer_norm.h"

namespace onestep::nn {

LayerNorm::LayerNorm(const Shape& normalized_shape, double eps, bool elementwise_affine, bool with_bias)
    : normalized_shape_(normalized_shape), eps_(eps) {
  ONESTEP_CHECK(ShapeError, !normalized_shape.empty(), "LayerNorm: normalized_shape needs at least one size");
  if (elementwise_affine) weight = ones(normalized_shape).requires_grad_();
  if (elementwise_affine && with_bias) bias = zeros(normalized_shape).requires_grad_();
}

std::string LayerNorm::extra_repr() const {
  return python_repr(normalized_shape_) + ", eps=" + python_repr(eps_) +
         ", elementwise_affine=" + python_repr(weight.defined()) + ", bias=" + python_repr(bias.defined());
}

void LayerNorm::visit(Visitor& visitor) {
  visitor.parameter("weight", weight);
  visitor.parameter("bias", bias);
}

}  // namespace onestep::nn
