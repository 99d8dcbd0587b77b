#pragma once
#include <memory>

#include "autograd/packed_weight.h"
#include "autograd/random/generator.h"
#include "nn/module.h"

namespace onestep::nn {

struct Lora;

/// y = x W^T + b: [..., in_features] -> [..., out_features] (torch.nn.Linear).
class Linear : public Layer {
 public:
  /// Draws the weight within +-1/sqrt(in_features) (kaiming_uniform_ with a = sqrt(5)), then the bias within the same bound.
  /// Throws ShapeError on a negative size.
  Linear(int64_t in_features, int64_t out_features, bool bias = true, Generator& generator = default_generator());

  Tensor forward(const Tensor& x) const override;
  std::string name() const override { return "Linear"; }
  std::string extra_repr() const override;
  void visit(Visitor& visitor) override;

  Tensor weight;                                    // [out_features, in_features]
  Tensor bias;                                      // [out_features], or undefined
  std::shared_ptr<const PackedWeight> packed = {};  // in place of weight, which is then undefined (pack_weights)
  std::shared_ptr<Lora> lora = {};                  // what is added to the output (add_lora)
};

}  // namespace onestep::nn
