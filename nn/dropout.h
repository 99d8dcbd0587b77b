#pragma once
#include "autograd/ops_nn.h"
#include "autograd/random/generator.h"
#include "nn/module.h"

namespace onestep::nn {

/// In training, zeroes each element with probability p and scales the others by 1 / (1 - p); in evaluation, the identity
/// (Srivastava et al. 2014; torch.nn.Dropout).
class Dropout : public Layer {
 public:
  /// Masks come from `generator`, which must outlive the module. Throws ConfigError unless 0 <= p <= 1.
  explicit Dropout(double p = 0.5, Generator& generator = default_generator());

  Tensor forward(const Tensor& x) const override { return dropout(x, p_, is_training(), *generator_); }
  std::string name() const override { return "Dropout"; }
  std::string extra_repr() const override { return "p=" + python_repr(p_) + ", inplace=False"; }

  double p() const { return p_; }
  Generator& generator() const { return *generator_; }

 private:
  double p_;
  Generator* generator_;
};

}  // namespace onestep::nn
