#pragma once
// Losses and the distances that they are made of (torch.nn.functional). Options that PyTorch takes by keyword are in braces:
// huber_loss(x, y, {.delta = 0.5}).
#include "autograd/tensor.h"

namespace onestep {

/// What a loss makes of its values: all of them, their mean or their sum; kl_div alone takes `batchmean`, the sum over size(0).
enum class Reduction { none, mean, sum, batchmean };

// ---- classes (ops/loss.cpp) ----------------------------------------------------------------------------------------------

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;   ///< Targets of this class count for nothing.
  double label_smoothing = 0.0;  ///< This share of every target is spread evenly over the classes.
  Tensor weight = {};            ///< A weight for each class [V].
};
/// -log softmax(logits)[target]: logits [V], [N, V] or [N, V, ...] (the class dim is dim 1, as in PyTorch) and int64 targets
/// [], [N] or [N, ...], or floating targets of the shape of logits that give each class its probability -> [] or, unreduced,
/// the logits' shape without classes. The mean is over targets that are not ignored (NaN if all are), weighted by the weight of
/// their class; over all rows where targets are probabilities. What the gradient needs takes the memory of logits whose last
/// handle is given (a temporary, `std::move(logits)`). Throws ShapeError on a target that is no class
/// (torch.nn.functional.cross_entropy).
Tensor cross_entropy(Tensor logits, const Tensor& target, const CrossEntropyOptions& options = {});
/// -weight[target] log_probabilities[target] (torch.nn.functional.nll_loss); shapes and mean as in cross_entropy.
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, Reduction reduction = Reduction::mean,
                int64_t ignore_index = -100, const Tensor& weight = {});
struct MultiMarginOptions {
  Reduction reduction = Reduction::mean;
  int p = 1;  ///< 1 or 2.
  double margin = 1.0;
  Tensor weight = {};  ///< A weight for each class [C].
};
/// sum_j max(0, margin - x[target] + x[j])^p / C over the classes j other than the target: scores [C] or [N, C], int64 targets
/// [] or [N] (torch.nn.functional.multi_margin_loss).
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginOptions& options = {});

/// sum over the targets j and the other classes k of max(0, 1 - x[j] + x[k]) / C: scores [C] or [N, C], int64 targets of the
/// same shape, of which those before the first -1 count (torch.nn.functional.multilabel_margin_loss). ops/loss_margin.cpp
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);

// ---- sequences (ops/loss_ctc.cpp) ----------------------------------------------------------------------------------------

struct CtcOptions {
  Reduction reduction = Reduction::mean;  ///< The mean is that of losses divided by the lengths of their targets.
  int64_t blank = 0;                      ///< The class that stands for no label.
  bool zero_infinity = false;             ///< Targets that do not fit their input have the loss 0 instead of infinity.
};
/// -log of the probability of `targets` summed over their alignments with the input, in which a label may be repeated and
/// blanks are between labels (Graves et al. 2006; torch.nn.functional.ctc_loss): log-probabilities [T, N, C] or [T, C],
/// integer targets [N, S], one behind the other, or [S], and lengths [N] or [] -> [] or, unreduced, [N] or []. The gradient is
/// that for log-probabilities which log_softmax made, as in PyTorch. Throws ShapeError, IndexError or ConfigError.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                const CtcOptions& options = {});

// ---- yes or no (ops/loss_binary.cpp) -------------------------------------------------------------------------------------

struct BinaryCrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  Tensor weight = {};  ///< Multiplies the losses; broadcasts to them.
};
/// -(y log p + (1 - y) log(1 - p)) for probabilities p and targets y of one shape, both in [0, 1]; the logarithms are at least
/// -100 (torch.nn.functional.binary_cross_entropy). Throws ShapeError on other shapes, ConfigError on a value outside [0, 1].
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const BinaryCrossEntropyOptions& options = {});
struct BinaryCrossEntropyWithLogitsOptions {
  Reduction reduction = Reduction::mean;
  Tensor weight = {};      ///< Multiplies the losses; broadcasts to them.
  Tensor pos_weight = {};  ///< Multiplies the part of the positive class; broadcasts.
};
/// binary_cross_entropy of sigmoid(input), without overflow (torch.nn.functional.binary_cross_entropy_with_logits).
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsOptions& options = {});
/// The mean over classes (the last dim) of binary_cross_entropy_with_logits, times `weight` of each class; targets may be
/// integers (torch.nn.functional.multilabel_soft_margin_loss).
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const BinaryCrossEntropyOptions& options = {});
/// log(1 + exp(-target input)), targets 1 and -1 (torch.nn.functional.soft_margin_loss).
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
struct KlDivOptions {
  Reduction reduction = Reduction::mean;
  bool log_target = false;  ///< The target holds log-probabilities, too.
};
/// target (log target - input), the Kullback-Leibler divergence of log-probabilities `input` from `target` once it is summed;
/// 0 log 0 is 0 (torch.nn.functional.kl_div).
Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& options = {});

// ---- numbers (ops/loss_regression.cpp) -----------------------------------------------------------------------------------

/// (prediction - target)^2, reduced (torch.nn.functional.mse_loss).
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean);
/// |prediction - target|, reduced (torch.nn.functional.l1_loss).
Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean);
struct SmoothL1Options {
  Reduction reduction = Reduction::mean;
  double beta = 1.0;
};
/// d^2 / (2 beta) where d = |prediction - target| < beta, else d - beta / 2; with beta 0 the l1_loss (Girshick 2015;
/// torch.nn.functional.smooth_l1_loss). Throws ConfigError on a negative beta.
Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, const SmoothL1Options& options = {});
struct HuberOptions {
  Reduction reduction = Reduction::mean;
  double delta = 1.0;
};
/// d^2 / 2 where d = |prediction - target| <= delta, else delta (d - delta / 2) (Huber 1964; torch.nn.functional.huber_loss).
/// Throws ConfigError unless delta is positive.
Tensor huber_loss(const Tensor& prediction, const Tensor& target, const HuberOptions& options = {});
struct PoissonNllOptions {
  Reduction reduction = Reduction::mean;
  bool log_input = true;  ///< The input is the logarithm of the rate.
  bool full = false;      ///< Adds Stirling's term y log y - y + log(2 pi y) / 2 where y > 1.
  double eps = 1e-8;      ///< Added to a rate before its logarithm is taken.
};
/// exp(input) - target input, or input - target log(input + eps) (torch.nn.functional.poisson_nll_loss).
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNllOptions& options = {});
struct GaussianNllOptions {
  Reduction reduction = Reduction::mean;
  bool full = false;  ///< Adds log(2 pi) / 2.
  double eps = 1e-6;  ///< The least variance; the gradient passes as if none had been raised to it.
};
/// (log var + (input - target)^2 / var) / 2; var has the shape of input, or size 1 or nothing in its last dim (Nix and Weigend
/// 1994; torch.nn.functional.gaussian_nll_loss). Throws ShapeError on another shape, ConfigError on a
/// negative variance.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, const GaussianNllOptions& options = {});

// ---- distances and margins (ops/loss_margin.cpp) -------------------------------------------------------------------------

/// x / max(norm(x, p) along dims, eps) (torch.nn.functional.normalize).
Tensor normalize(const Tensor& x, double p = 2.0, const Shape& dims = 1, double eps = 1e-12);
/// a . b / (max(|a|, eps) max(|b|, eps)) along `dim`; a and b broadcast (torch.nn.functional.cosine_similarity).
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim = 1, double eps = 1e-8);
/// norm(a - b + eps, p) over the last dim; a and b broadcast (torch.nn.functional.pairwise_distance).
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2.0, double eps = 1e-6, bool keepdim = false);

struct MarginOptions {
  Reduction reduction = Reduction::mean;
  double margin = 0.0;
};
/// max(0, margin - target (a - b)): target 1 asks for a above b, -1 for b above a (torch.nn.functional.margin_ranking_loss).
Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, const MarginOptions& options = {});
/// 1 - cos(a, b) where target is 1, max(0, cos(a, b) - margin) where it is -1: a and b [N, d] or [d], target [N] or []
/// (torch.nn.functional.cosine_embedding_loss).
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, const MarginOptions& options = {});
struct HingeEmbeddingOptions {
  Reduction reduction = Reduction::mean;
  double margin = 1.0;
};
/// x where target is 1, max(0, margin - x) where it is -1 (torch.nn.functional.hinge_embedding_loss).
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingOptions& options = {});
struct TripletMarginOptions {
  Reduction reduction = Reduction::mean;
  double margin = 1.0, p = 2.0, eps = 1e-6;
  bool swap = false;  ///< The negative's distance from the positive counts where it is the smaller one.
};
/// max(0, d(anchor, positive) - d(anchor, negative) + margin), d the pairwise_distance (Balntas et al. 2016;
/// torch.nn.functional.triplet_margin_loss). Throws ConfigError unless the margin is positive.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& options = {});

}  // namespace onestep
