#pragma once
#include <string_view>

#include "nn/sequential.h"

namespace onestep::nn {

/// Linear, activation, Linear at every position: [..., d_model] -> [..., expansion * d_model] -> [..., d_model]
/// (Vaswani et al. 2017, section 3.3).
class FeedForward : public Layer {
 public:
  /// `activation` as in make_activation. Draws the first Linear, then the second. Throws ConfigError on an unknown activation.
  explicit FeedForward(int64_t d_model, int64_t expansion = 4, std::string_view activation = "gelu",
                       Generator& generator = default_generator());

  Tensor forward(const Tensor& x) const override { return layers(x); }
  std::string name() const override { return "FeedForward"; }
  void visit(Visitor& visitor) override { visitor.child("layers", layers); }

  Sequential layers;
};

}  // namespace onestep::nn
