#pragma once
#include "autograd/ops_nn.h"
#include "nn/module.h"

namespace onestep::nn {

/// (x - mean) / sqrt(var + eps) * weight + bias over the last dims, biased variance: same shape (Ba et al. 2016;
/// torch.nn.LayerNorm).
class LayerNorm : public Layer {
 public:
  /// weight starts at 1 and bias at 0; nothing is drawn. Throws ShapeError unless normalized_shape has 1 to 6 sizes.
  explicit LayerNorm(const Shape& normalized_shape, double eps = 1e-5, bool elementwise_affine = true, bool bias = true);
  LayerNorm(std::initializer_list<int64_t> normalized_shape, double eps = 1e-5, bool elementwise_affine = true,
            bool with_bias = true)
      : LayerNorm(Shape(normalized_shape), eps, elementwise_affine, with_bias) {}

  Tensor forward(const Tensor& x) const override { return layer_norm(x, normalized_shape_, weight, bias, eps_); }
  std::string name() const override { return "LayerNorm"; }
  std::string extra_repr() const override;
  void visit(Visitor& visitor) override;

  Tensor weight;  // normalized_shape, or undefined without elementwise_affine
  Tensor bias;    // normalized_shape, or undefined

 private:
  Shape normalized_shape_;
  double eps_;
};

}  // namespace onestep::nn
