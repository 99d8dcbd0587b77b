#pragma once
#include <optional>

#include "nn/module.h"

namespace onestep::nn {

/// x / sqrt(mean(x^2) + eps) * weight over the last dims: same shape (Zhang and Sennrich 2019; torch.nn.RMSNorm).
class RMSNorm : public Layer {
 public:
  /// weight starts at 1; nothing is drawn. Without eps it is the distance of 1 to the next number of x's dtype. Throws
  /// ShapeError unless normalized_shape has 1 to 6 sizes.
  explicit RMSNorm(const Shape& normalized_shape, std::optional<double> eps = {}, bool elementwise_affine = true);
  RMSNorm(std::initializer_list<int64_t> normalized_shape, std::optional<double> eps = {}, bool elementwise_affine = true)
      : RMSNorm(Shape(normalized_shape), eps, elementwise_affine) {}

  /// Throws ShapeError unless the last dims of x are normalized_shape.
  Tensor forward(const Tensor& x) const override;
  std::string name() const override { return "RMSNorm"; }
  std::string extra_repr() const override;
  void visit(Visitor& visitor) override { visitor.parameter("weight", weight); }

  Tensor weight;  // normalized_shape, or undefined without elementwise_affine

 private:
  Shape normalized_shape_;
  std::optional<double> eps_;
};

}  // namespace onestep::nn
