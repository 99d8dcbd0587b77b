#pragma once
#include "nn/module.h"

namespace onestep::nn {

/// x itself (torch.nn.Identity).
class Identity : public Layer {
 public:
  Tensor forward(const Tensor& x) const override { return x; }
  std::string name() const override { return "Identity"; }
};

}  // namespace onestep::nn
