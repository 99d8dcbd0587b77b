#pragma once
#include "autograd/random/generator.h"
#include "nn/module.h"

namespace onestep::nn {

/// y_o = a^T W_o b + bias_o: [..., in1_features] and [..., in2_features] -> [..., out_features] (torch.nn.Bilinear).
class Bilinear : public Module {
 public:
  /// Draws the weight, then the bias, within +-1/sqrt(in1_features). Throws ShapeError unless the sizes are positive.
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, bool bias = true,
           Generator& generator = default_generator());

  Tensor forward(const Tensor& a, const Tensor& b) const;
  Tensor operator()(const Tensor& a, const Tensor& b) const {
    const RunningModule running(*this);
    return forward(a, b);
  }
  std::string name() const override { return "Bilinear"; }
  std::string extra_repr() const override;
  void visit(Visitor& visitor) override;

  Tensor weight;  // [out_features, in1_features, in2_features]
  Tensor bias;    // [out_features], or undefined
};

}  // namespace onestep::nn
