// Connectionist temporal classification (Graves et al. 2006): the forward recursion over alignments and its gradient as loops,
// and in ops for a gradient that is recorded.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/creation.h"
#include "autograd/grad.h"
#include "autograd/kernels/kernels.h"
#include "autograd/operators.h"
#include "autograd/ops/loss_common.h"
#include "autograd/ops_conv.h"
#include "autograd/ops_index.h"
#include "autograd/ops_nn.h"
#include "autograd/vector_loop.h"

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

/// The scores of all states after the last step, [N, 2 S + 1]: log of the summed probabilities of the alignments that end
/// there.
Tensor scores_in_ops(const Tensor& log_probs, const States& states, const Tensor& lengths) {
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
  return scores;
}

/// Of each state the largest of the three scores before, and how far they are from it; `before` begins two states earlier.
template <class T>
ONESTEP_EACH_ISA void differences(const T* before, const bool* skips, T* largest, T* to, int64_t n) {
  for (int64_t s = 0; s < n; ++s) {
    const T stay = before[s + 2], next = before[s + 1], skip = skips[s] ? before[s] : T(kLogZero);
    const T two = stay > next ? stay : next, most = two > skip ? two : skip;
    largest[s] = std::fabs(most) > std::numeric_limits<T>::max() ? T(0) : most;  // infinity less itself would be NaN
    to[s] = stay - largest[s];
    to[n + s] = next - largest[s];
    to[2 * n + s] = skip - largest[s];
  }
}

/// One step of the recursion for `count` states: of each the three scores before, as exponentials beside the largest.
template <class T>
struct Step {
  explicit Step(int64_t states) : count(states), largest(size(1)), exps(size(3)), sums(size(1)) {}

  void take(const T* before, const bool* skips) {
    differences(before, skips, largest.data(), exps.data(), count);
    kernels::exp(exps.data(), exps.data(), 3 * count);
    const T *stay = exps.data(), *next = stay + count, *skip = next + count;
    vector_loop([](T a, T b, T c) { return a + c + b; }, sums.data(), count, stay, next, skip);  // as logsumexp adds them
  }

  size_t size(int64_t rows) const { return static_cast<size_t>(rows * count); }

  int64_t count;
  std::vector<T> largest, exps, sums;
};

/// What the loops need of one sequence: the rows of its tensors, in which `step` rows later is the next time.
template <class T>
struct Sequence {
  Sequence(const Tensor& log_probs, const States& states, const Tensor& lengths, int64_t n)
      : classes(log_probs.shape()[2]),
        step(log_probs.shape()[1] * classes),
        count(states.ends.data<int64_t>()[2 * n] + 1),
        steps(lengths.data<int64_t>()[n]),
        first(n * classes),
        probs(log_probs.data<T>() + first),
        labels(states.labels.data<int64_t>() + n * states.labels.shape()[1]),
        skips(states.skips.data<bool>() + n * states.labels.shape()[1]) {}

  int64_t classes, step, count, steps, first;
  const T* probs;
  const int64_t* labels;
  const bool* skips;
};

/// The scores of scores_in_ops. `rows` [N, R, 2 S + 3] gets those before time t in row t % R, behind two of probability 0.
template <class T>
void forward_scores(const Sequence<T>& sequence, T* rows, int64_t kept, int64_t width, T* scores) {
  Step<T> step(sequence.count);
  std::vector<T> logs(step.size(1));
  std::fill_n(rows, kept * width, T(kLogZero));
  rows[2] = 0;
  for (int64_t t = 0; t < sequence.steps; ++t) {
    step.take(rows + t % kept * width, sequence.skips);
    kernels::log(step.sums.data(), logs.data(), sequence.count);
    T* const next = rows + (t + 1) % kept * width + 2;
    for (int64_t s = 0; s < sequence.count; ++s) {
      const T emission = sequence.probs[t * sequence.step + sequence.labels[s]];
      next[s] = step.largest[static_cast<size_t>(s)] + logs[static_cast<size_t>(s)] +
                (emission < T(kLogZero) ? T(kLogZero) : emission);
    }
  }
  std::copy_n(rows + sequence.steps % kept * width + 2, width - 2, scores);
}

/// The gradient of forward_scores: each of the three scores before gets its share of the sum.
template <class T>
void backward_scores(const Sequence<T>& sequence, const T* rows, int64_t width, const T* dscores, T* dprobs) {
  Step<T> step(sequence.count);
  std::vector<T> grads(dscores, dscores + sequence.count);
  for (int64_t t = sequence.steps - 1; t >= 0; --t) {
    step.take(rows + t * width, sequence.skips);
    const int64_t n = sequence.count;
    const T* const exps = step.exps.data();
    for (int64_t s = 0; s < n; ++s) {
      const auto at = static_cast<size_t>(s);
      const int64_t place = t * sequence.step + sequence.labels[s];
      if (sequence.probs[place] >= T(kLogZero)) dprobs[place] += grads[at];
      const T scale = 1 / step.sums[at], grad = grads[at];
      const auto share = [=](int64_t k) { return exps[k * n + s] * scale * grad; };
      grads[at] = share(0);
      if (s > 0) grads[at - 1] += share(1);
      if (sequence.skips[s]) grads[at - 2] += share(2);
    }
  }
}

/// The gradient of scores_in_ops in ops, recorded where log_probs has a place in the graph.
Tensor recorded_grad(const Tensor& log_probs, const States& states, const Tensor& lengths, const Tensor& dscores) {
  const EnableGradGuard recorded;
  const bool placed = log_probs.requires_grad();
  const Tensor p = placed ? log_probs : log_probs.detach().requires_grad_();
  const autograd::GradOptions options{.create_graph = placed, .recordable = true};
  return autograd::grad({scores_in_ops(p, states, lengths)}, {p}, {dscores}, options)[0];
}

/// scores_in_ops of the sequences, each by itself; `lengths` int64 [N].
Tensor scores_of(const Tensor& log_probs, const States& states, const Tensor& lengths) {
  const Tensor p = ops::contiguous_values(log_probs);
  const bool recorded = detail::should_record({log_probs});
  const int64_t steps = p.shape()[0], n = p.shape()[1], count = states.labels.shape()[1];
  const int64_t width = count + 2, kept = recorded ? steps + 1 : 2;
  Tensor scores = empty({n, count}, p.dtype()), rows = empty({n, kept, width}, p.dtype());
  const double cost = 10.0 * static_cast<double>(steps * count);
  dispatch_floating(p.dtype(), kOp, [&]<class T>() {
    T *const to = scores.mutable_data<T>(), *const row = rows.mutable_data<T>();
    kernels::parallel_for(n, cost, [&](int64_t i, int64_t end) {
      for (; i < end; ++i)
        forward_scores(Sequence<T>(p, states, lengths, i), row + i * kept * width, kept, width, to + i * count);
    });
  });
  if (!recorded) return scores;
  return record(kOp, scores, {log_probs}, {log_probs, rows, lengths, states.labels, states.skips, states.ends},
                [width, cost](const Backward& b) -> Grads {
                  const States saved{b.saved(3), b.saved(4), b.saved(5)};
                  if (b.recording()) return {recorded_grad(b.saved(0), saved, b.saved(2), b.grad())};
                  const Tensor values = ops::contiguous_values(b.saved(0)), dy = ops::contiguous_values(b.grad());
                  Tensor dx = zeros(values.shape(), values.dtype());
                  dispatch_floating(values.dtype(), kOp, [&]<class T>() {
                    const T *const dscores = dy.data<T>(), *const row = b.saved(1).data<T>();
                    T* const to = dx.mutable_data<T>();
                    const int64_t each = (values.shape()[0] + 1) * width;
                    kernels::parallel_for(dy.shape()[0], cost, [&](int64_t i, int64_t end) {
                      for (; i < end; ++i) {
                        const Sequence<T> sequence(values, saved, b.saved(2), i);
                        backward_scores(sequence, row + i * each, width, dscores + i * (width - 2), to + sequence.first);
                      }
                    });
                  });
                  return {dx};
                });
}

/// log of the summed probabilities of all alignments [N]; far below any other for a target that does not fit.
Tensor log_likelihood(const Tensor& log_probs, const States& states, const Tensor& lengths) {
  const Tensor scores = scores_of(log_probs, states, lengths), last = gather(scores, 1, states.ends);
  const Tensor twice = eq(select(states.ends, 1, 0), 0);
  return logsumexp(stack({select(last, 1, 0), masked_fill(select(last, 1, 1), twice, kLogZero)}), 0);
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

  const Tensor ends = clone(ops::contiguous_values(flatten(to(input_lengths, DType::int64))));  // saved, not to be written to
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
