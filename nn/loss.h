#pragma once
// Losses as modules; what they compute, and their options, is documented in autograd/ops_loss.h.
#include <type_traits>
#include <utility>

#include "autograd/ops_loss.h"
#include "nn/literal.h"
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

/// What losses that are one function have in common: its options, a struct or a Reduction. Weights among them are buffers, as
/// in PyTorch.
template <Literal kName, class Options, class Base>
class LossFunction : public Base {
 public:
  explicit LossFunction(Options options = defaults()) : options_(std::move(options)) {}
  std::string name() const override { return kName.string(); }
  void visit(Visitor& visitor) override {
    if constexpr (requires(Options & o) { o.weight; }) visitor.buffer("weight", options_.weight);
    if constexpr (requires(Options & o) { o.pos_weight; }) visitor.buffer("pos_weight", options_.pos_weight);
  }

 protected:
  Options options_;

 private:
  static Options defaults() {
    if constexpr (std::is_same_v<Options, Reduction>)
      return Reduction::mean;
    else
      return {};
  }
};

/// kFunction(input, target, options) as a module.
template <Literal kName, auto kFunction, class Options = Reduction>
class PairLoss : public LossFunction<kName, Options, Loss> {
 public:
  using LossFunction<kName, Options, Loss>::LossFunction;
  Tensor forward(const Tensor& input, const Tensor& target) const override { return kFunction(input, target, this->options_); }
};

/// kFunction(a, b, c, options) as a module.
template <Literal kName, auto kFunction, class Options>
class TripleLoss : public LossFunction<kName, Options, Module> {
 public:
  using LossFunction<kName, Options, Module>::LossFunction;
  Tensor forward(const Tensor& a, const Tensor& b, const Tensor& c) const { return kFunction(a, b, c, this->options_); }
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c) const {
    const RunningModule running(*this);
    return forward(a, b, c);
  }
};

using CrossEntropyLoss = PairLoss<"CrossEntropyLoss", cross_entropy, CrossEntropyOptions>;
using MultiMarginLoss = PairLoss<"MultiMarginLoss", multi_margin_loss, MultiMarginOptions>;
using BCELoss = PairLoss<"BCELoss", binary_cross_entropy, BinaryCrossEntropyOptions>;
using BCEWithLogitsLoss = PairLoss<"BCEWithLogitsLoss", binary_cross_entropy_with_logits, BinaryCrossEntropyWithLogitsOptions>;
using MultiLabelSoftMarginLoss = PairLoss<"MultiLabelSoftMarginLoss", multilabel_soft_margin_loss, BinaryCrossEntropyOptions>;
using MultiLabelMarginLoss = PairLoss<"MultiLabelMarginLoss", multilabel_margin_loss>;
using SoftMarginLoss = PairLoss<"SoftMarginLoss", soft_margin_loss>;
using KLDivLoss = PairLoss<"KLDivLoss", kl_div, KlDivOptions>;
using MSELoss = PairLoss<"MSELoss", mse_loss>;
using L1Loss = PairLoss<"L1Loss", l1_loss>;
using SmoothL1Loss = PairLoss<"SmoothL1Loss", smooth_l1_loss, SmoothL1Options>;
using HuberLoss = PairLoss<"HuberLoss", huber_loss, HuberOptions>;
using PoissonNLLLoss = PairLoss<"PoissonNLLLoss", poisson_nll_loss, PoissonNllOptions>;
using HingeEmbeddingLoss = PairLoss<"HingeEmbeddingLoss", hinge_embedding_loss, HingeEmbeddingOptions>;
/// Of input, target and variance.
using GaussianNLLLoss = TripleLoss<"GaussianNLLLoss", gaussian_nll_loss, GaussianNllOptions>;
/// Of two inputs and a target.
using MarginRankingLoss = TripleLoss<"MarginRankingLoss", margin_ranking_loss, MarginOptions>;
using CosineEmbeddingLoss = TripleLoss<"CosineEmbeddingLoss", cosine_embedding_loss, MarginOptions>;
/// Of anchor, positive and negative.
using TripletMarginLoss = TripleLoss<"TripletMarginLoss", triplet_margin_loss, TripletMarginOptions>;

/// nll_loss of log-probabilities and class numbers (torch.nn.NLLLoss).
class NLLLoss : public Loss {
 public:
  explicit NLLLoss(Reduction reduction = Reduction::mean, int64_t ignore_index = -100, Tensor weights = {})
      : weight(std::move(weights)), reduction_(reduction), ignore_index_(ignore_index) {}
  Tensor forward(const Tensor& log_probabilities, const Tensor& target) const override {
    return nll_loss(log_probabilities, target, reduction_, ignore_index_, weight);
  }
  std::string name() const override { return "NLLLoss"; }
  void visit(Visitor& visitor) override { visitor.buffer("weight", weight); }

  Tensor weight;  // [V], or undefined

 private:
  Reduction reduction_;
  int64_t ignore_index_;
};

/// ctc_loss of log-probabilities, targets and their lengths (torch.nn.CTCLoss).
class CTCLoss : public LossFunction<"CTCLoss", CtcOptions, Module> {
 public:
  using LossFunction::LossFunction;
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths) const {
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, options_);
  }
  Tensor operator()(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                    const Tensor& target_lengths) const {
    const RunningModule running(*this);
    return forward(log_probs, targets, input_lengths, target_lengths);
  }
};

}  // namespace onestep::nn
