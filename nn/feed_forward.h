#pragma once
#include <string_view>

#include "autograd/operators.h"
#include "autograd/ops_math.h"
#include "autograd/random/generator.h"
#include "nn/linear.h"
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

/// A feed-forward layer with a gate: down_proj(silu(gate_proj(x)) * up_proj(x)): [..., d_model] -> [..., d_ff] -> [...,
/// d_model] (Shazeer 2020). With d_ff = 8/3 d_model it has as many weights as a FeedForward of expansion 4.
class SwiGLU : public Layer {
 public:
  /// Draws gate_proj, up_proj, down_proj. Throws ShapeError on a negative size.
  SwiGLU(int64_t d_model, int64_t d_ff, bool bias = false, Generator& generator = default_generator());

  Tensor forward(const Tensor& x) const override { return down_proj(silu(gate_proj(x)) * up_proj(x)); }
  std::string name() const override { return "SwiGLU"; }
  void visit(Visitor& visitor) override;

  Linear gate_proj, up_proj;  // [d_model] -> [d_ff]
  Linear down_proj;           // [d_ff] -> [d_model]
};

}  // namespace onestep::nn
