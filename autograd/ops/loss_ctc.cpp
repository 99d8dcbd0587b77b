// Connectionist temporal classification (Graves et al. 2006): the forward recursion over alignments in ops that are recorded.
#include <algorithm>

#include "autograd/creation.h"
#include "autograd/operators.h"
#include "autograd/ops/loss_common.h"
#include "autograd/ops_conv.h"
#include "autograd/ops_index.h"
#include "autograd/ops_nn.h"

namespace onestep {
namespace {

constexpr const char* kOp = "ctc_loss";
constexpr double kLogZero = -1e30;  // stands for log 0: differences of infinities would make gradients of NaN

/// The numbers of an integer tensor.
std::vector<int64_t> numbers(const char* what, const Tensor& x) {
  ONESTEP_CHECK(DTypeError, x.dtype() == DType::int64 || x.dtype() == DType::int32, kOp, ": ", what,
                " must be int64 or int32: got ", x.dtype());
  const Tensor values = ops::contiguous_values(to(x.detach(), DType::int64));
  const auto* first = values.data<int64_t>();
  return {first, first + values.numel()};
}

/// Lengths of N sequences, of at most `most`.
std::vector<int64_t> checked_lengths(const char* what, const Tensor& x, int64_t batch, int64_t most) {
  std::vector<int64_t> lengths = numbers(what, x);
  ONESTEP_CHECK(ShapeError, static_cast<int64_t>(lengths.size()) == batch && x.dim() <= 1, kOp, ": ", what, " of shape ",
                x.shape(), " for ", batch, " sequences");
  for (const int64_t length : lengths)
    ONESTEP_CHECK(ConfigError, 0 <= length && length <= most, kOp, ": ", what, " must lie between 0 and ", most, ": got ",
                  length);
  return lengths;
}

/// The states of all alignments: the labels with a blank before, between and after them.
struct States {
  Tensor labels;  ///< int64 [N, 2 S + 1]
  Tensor skips;   ///< bool [N, 2 S + 1]: states that may follow the one before the last, another label with a blank between.
  Tensor ends;    ///< int64 [N, 2]: the states in which an alignment may end, twice the same where there is no label.
};

States states_of(const std::vector<int64_t>& targets, const std::vector<int64_t>& lengths, int64_t row, int64_t classes,
                 int64_t blank) {
  const auto n = static_cast<int64_t>(lengths.size());
  const int64_t count = 2 * (n > 0 ? *std::max_element(lengths.begin(), lengths.end()) : 0) + 1;
  States states{full({n, count}, blank, DType::int64), zeros({n, count}, DType::boolean), zeros({n, 2}, DType::int64)};
  auto* labels = states.labels.mutable_data<int64_t>();
  auto* skips = states.skips.mutable_data<bool>();
  int64_t first = 0;
  for (int64_t i = 0; i < n; ++i, labels += count, skips += count) {
    const int64_t length = lengths[static_cast<size_t>(i)];
    for (int64_t j = 0; j < length; ++j) {
      const int64_t label = targets[static_cast<size_t>(first + j)];
      ONESTEP_CHECK(IndexError, 0 <= label && label < classes, kOp, ": target ", label, " of sequence ", i,
                    " is out of range for ", classes, " classes");
      labels[2 * j + 1] = label;
      skips[2 * j + 1] = j > 0 && label != labels[2 * j - 1];
    }
    first += row > 0 ? row : length;
    states.ends.mutable_data<int64_t>()[2 * i] = 2 * length;
    states.ends.mutable_data<int64_t>()[2 * i + 1] = std::max<int64_t>(2 * length - 1, 0);
  }
  return states;
}

/// The scores of the states `places` before.
Tensor moved(const Tensor& scores, int64_t places) {
  const int64_t kept = std::max<int64_t>(scores.size(1) - places, 0);
  return pad(narrow(scores, 1, 0, kept), {scores.size(1) - kept, 0}, PadMode::constant, kLogZero);
}

/// log of the summed probabilities of all alignments [N]; far below any other for a target that does not fit.
Tensor log_likelihood(const Tensor& log_probs, const States& states, const Tensor& lengths) {
  const int64_t steps = log_probs.shape()[0], count = states.labels.shape()[1];
  const Tensor emissions =
      clamp(gather(log_probs, 2, expand(states.labels, {steps, states.labels.shape()[0], count})), kLogZero);
  Tensor scores = where(lt(arange(count), 1), zeros({}, log_probs.dtype()), full({}, kLogZero, log_probs.dtype()));
  scores = expand(scores, states.labels.shape());  // before the first step: as if a blank had come
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor skipped = where(states.skips, moved(scores, 2), full({}, kLogZero, scores.dtype()));
    const Tensor next = logsumexp(stack({scores, moved(scores, 1), skipped}), 0) + select(emissions, 0, t);
    scores = where(gt(unsqueeze(lengths, 1), t), next, scores);
  }
  Tensor last = gather(scores, 1, states.ends);
  const Tensor twice = eq(select(states.ends, 1, 0), 0);
  last = stack({select(last, 1, 0), masked_fill(select(last, 1, 1), twice, kLogZero)});
  return logsumexp(last, 0);
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                const CtcOptions& options) {
  ops::check_floating(kOp, log_probs);
  ops::check_reduction(kOp, options.reduction);
  ONESTEP_CHECK(ShapeError, (log_probs.dim() == 2 || log_probs.dim() == 3) && log_probs.numel() > 0, kOp,
                ": needs log-probabilities [T, N, C] or [T, C]: got ", log_probs.shape());
  if (is_narrow(log_probs.dtype()))
    return to(ctc_loss(ops::wide(log_probs), targets, input_lengths, target_lengths, options), log_probs.dtype());
  const Tensor p = log_probs.dim() == 3 ? log_probs : unsqueeze(log_probs, 1);
  const int64_t steps = p.shape()[0], batch = p.shape()[1], classes = p.shape()[2];
  ONESTEP_CHECK(ConfigError, 0 <= options.blank && options.blank < classes, kOp, ": blank must be one of ", classes,
                " classes: got ", options.blank);
  const bool padded = targets.dim() == 2;
  ONESTEP_CHECK(ShapeError, targets.dim() == 1 || (padded && targets.shape()[0] == batch), kOp, ": targets of shape ",
                targets.shape(), " for ", batch, " sequences (needs [N, S], or all behind one another)");
  const std::vector<int64_t> labels = numbers("targets", targets);
  checked_lengths("input_lengths", input_lengths, batch, steps);
  const std::vector<int64_t> counts = checked_lengths("target_lengths", target_lengths, batch, targets.size(-1));
  int64_t all = 0;
  for (const int64_t count : counts) all += count;
  ONESTEP_CHECK(ShapeError, padded || all == targets.numel(), kOp, ": target_lengths add up to ", all, " for ", targets.numel(),
                " targets");

  const Tensor ends = flatten(to(input_lengths, DType::int64));
  Tensor likelihood =
      log_likelihood(p, states_of(labels, counts, padded ? targets.shape()[1] : 0, classes, options.blank), ends);
  if (detail::should_record({p})) {
    // PyTorch's gradient, exp(log_probs) - dlikelihood, is the same behind log_softmax: the sum of probabilities stays 1.
    const Tensor counted = unsqueeze(lt(unsqueeze(arange(steps), 1), ends), 2);
    const Tensor total = sum(masked_fill(exp(p), logical_not(counted), 0), {0, 2});
    likelihood = likelihood - (total - total.detach());
  }
  const Tensor impossible = lt(likelihood, kLogZero / 2);
  // Over 0 rather than filled: then gradients are not finite, either.
  Tensor losses = options.zero_infinity ? masked_fill(neg(likelihood), impossible, 0)
                                        : div(neg(likelihood), to(logical_not(impossible), p.dtype()));
  if (options.reduction == Reduction::mean) losses = div(losses, clamp(to(flatten(target_lengths), losses.dtype()), 1.0));
  if (log_probs.dim() == 2) losses = squeeze(losses, 0);
  return ops::reduced(kOp, losses, options.reduction);
}

}  // namespace onestep
