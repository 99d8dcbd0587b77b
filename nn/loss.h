#pragma once
// Losses as modules; what they compute is documented in autograd/ops.h.
#include "nn/module.h"

namespace onestep::nn {

/// A module that compares a prediction with a target: [] or, unreduced, one value a target.
class Loss : public Module {
 public:
  virtual Tensor forward(const Tensor& input, const Tensor& target) const = 0;
  Tensor operator()(const Tensor& input, const Tensor& target) const {
    const RunningModule running(*this);
    return forward(input, target);
  }
};

/// cross_entropy of logits and class numbers (torch.nn.CrossEntropyLoss).
class CrossEntropyLoss : public Loss {
 public:
  explicit CrossEntropyLoss(const CrossEntropyOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& logits, const Tensor& target) const override { return cross_entropy(logits, target, options_); }
  std::string name() const override { return "CrossEntropyLoss"; }

 private:
  CrossEntropyOptions options_;
};

/// nll_loss of log-probabilities and class numbers (torch.nn.NLLLoss).
class NLLLoss : public Loss {
 public:
  explicit NLLLoss(Reduction reduction = Reduction::mean, int64_t ignore_index = -100)
      : reduction_(reduction), ignore_index_(ignore_index) {}
  Tensor forward(const Tensor& log_probabilities, const Tensor& target) const override {
    return nll_loss(log_probabilities, target, reduction_, ignore_index_);
  }
  std::string name() const override { return "NLLLoss"; }

 private:
  Reduction reduction_;
  int64_t ignore_index_;
};

/// mse_loss (torch.nn.MSELoss).
class MSELoss : public Loss {
 public:
  explicit MSELoss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target) const override { return mse_loss(input, target, reduction_); }
  std::string name() const override { return "MSELoss"; }

 private:
  Reduction reduction_;
};

}  // namespace onestep::nn
