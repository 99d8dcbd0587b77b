#include <cmath>
#include <limits>

#include "autograd/ops/loss_cases.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using Labels = std::vector<int64_t>;

/// What an alignment spells: repetitions once, and no blanks.
Labels collapsed(const Labels& path, int64_t blank) {
  Labels labels;
  for (size_t t = 0; t < path.size(); ++t)
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
  return labels;
}

/// -log of the sum over all paths of `steps` classes that spell the labels; `log_prob(t, c)`.
template <class F>
double loss_of(int64_t steps, int64_t classes, const Labels& labels, int64_t blank, F log_prob) {
  double total = 0;
  Labels path(static_cast<size_t>(steps));
  const auto paths = static_cast<int64_t>(std::llround(std::pow(classes, steps)));
  for (int64_t i = 0; i < paths; ++i) {
    double score = 0;
    for (int64_t t = 0, rest = i; t < steps; ++t, rest /= classes) {
      path[static_cast<size_t>(t)] = rest % classes;
      score += log_prob(t, rest % classes);
    }
    if (collapsed(path, blank) == labels) total += std::exp(score);
  }
  return -std::log(total);
}

struct Batch {
  Shape shape;  ///< Of the log-probabilities.
  std::vector<Labels> targets;
  Labels steps;
  bool joined = false;  ///< Targets one behind the other.
};

/// ctc_loss behind log_softmax, for which its gradient is meant.
OpSample sample(const std::string& label, const Batch& batch, const CtcOptions& options = {}) {
  const auto n = static_cast<int64_t>(batch.targets.size());
  const bool single = batch.shape.rank() == 2;
  Labels lengths, flat;
  size_t most = 0;
  for (const Labels& row : batch.targets) {
    lengths.push_back(static_cast<int64_t>(row.size()));
    most = std::max(most, row.size());
  }
  for (Labels row : batch.targets) {
    if (!batch.joined && !single) row.resize(most);
    flat.insert(flat.end(), row.begin(), row.end());
  }
  const Shape targets =
      batch.joined || single ? Shape(static_cast<int64_t>(flat.size())) : Shape{n, static_cast<int64_t>(most)};
  const Shape counts = single ? Shape() : Shape(n);
  return {.label = label,
          .inputs = {{batch.shape}},
          .forward =
              [=](const std::vector<Tensor>& in) {
                return ctc_loss(log_softmax(in[0], -1), from_values(flat, targets), from_values(batch.steps, counts),
                                from_values(lengths, counts), options);
              },
          .reference =
              [=](const std::vector<Values>& in) {
                const int64_t classes = batch.shape.back();
                Values losses(counts);
                double weighted = 0;
                for (int64_t i = 0; i < n; ++i) {
                  const auto at = static_cast<size_t>(i);
                  losses[i] = loss_of(batch.steps[at], classes, batch.targets[at], options.blank, [&](int64_t t, int64_t c) {
                    const double* x = &in[0].data[static_cast<size_t>((t * n + i) * classes)];
                    double total = 0;
                    for (int64_t j = 0; j < classes; ++j) total += std::exp(x[j]);
                    return x[c] - std::log(total);
                  });
                  if (options.zero_infinity && std::isinf(losses[i])) losses[i] = 0;
                  weighted += losses[i] / std::max(1.0, static_cast<double>(lengths[at])) / static_cast<double>(n);
                }
                if (options.reduction != Reduction::mean) return loss_cases::reduced(losses, options.reduction);
                Values mean{Shape()};
                mean[0] = weighted;
                return mean;
              },
          .rounds_once = false};
}

OpSample impossible() {
  OpSample infinite = sample("a target that does not fit", {{2, 2, 3}, {{1, 1}, {2}}, {2, 2}}, {.reduction = Reduction::none});
  infinite.differentiable = false;
  return infinite;
}

Tensor log_probs() { return zeros({3, 2, 3}); }

const RegisterOpCases registered([] {
  return OpCases{
      {"ctc_loss",
       {sample("mean", {{4, 2, 3}, {{1, 2}, {2}}, {4, 3}}),
        sample("repeated labels", {{4, 2, 3}, {{1, 1}, {2, 1}}, {4, 4}}, {.reduction = Reduction::none}),
        sample("one behind the other", {{3, 3, 3}, {{1, 2}, {}, {2}}, {3, 2, 1}, true}, {.reduction = Reduction::sum}),
        sample("another blank", {{3, 2, 3}, {{0, 1}, {1}}, {3, 2}}, {.reduction = Reduction::sum, .blank = 2}),
        sample("one sequence", {{4, 3}, {{2, 1}}, {4}}, {.reduction = Reduction::none}), impossible(),
        sample("infinity as 0", {{2, 2, 3}, {{1, 1}, {2}}, {2, 2}}, {.zero_infinity = true})},
       {{"rank", [] { ctc_loss(zeros(3), tensor({1}), tensor({1}), tensor({1})); },
         "ctc_loss: needs log-probabilities [T, N, C] or [T, C]: got [3]"},
        {"nothing",
         [] {
           ctc_loss(zeros({3, 0, 3}), zeros({0, 1}, DType::int64), zeros({0}, DType::int64), zeros({0}, DType::int64));
         },
         "ctc_loss: ", is_a<ShapeError>},
        {"blank",
         [] {
           ctc_loss(log_probs(), tensor({{1}, {2}}), tensor({3, 3}), tensor({1, 1}), {.blank = 3});
         },
         "ctc_loss: blank must be one of 3 classes: got 3"},
        {"class above",
         [] {
           ctc_loss(log_probs(), tensor({{1}, {3}}), tensor({3, 3}), tensor({1, 1}));
         },
         "ctc_loss: target 3 of sequence 1 is out of range for 3 classes"},
        {"targets",
         [] {
           ctc_loss(log_probs(), tensor({{1}}), tensor({3, 3}), tensor({1, 1}));
         },
         "ctc_loss: targets of shape [1, 1] for 2 sequences (needs [N, S], or all behind one another)"},
        {"lengths",
         [] {
           ctc_loss(log_probs(), tensor({{1}, {2}}), tensor({3, 4}), tensor({1, 1}));
         },
         "ctc_loss: input_lengths must lie between 0 and 3: got 4"},
        {"number of lengths",
         [] {
           ctc_loss(log_probs(), tensor({{1}, {2}}), tensor({3}), tensor({1, 1}));
         },
         "ctc_loss: input_lengths of shape [1] for 2 sequences"},
        {"too few targets",
         [] {
           ctc_loss(log_probs(), tensor({1, 2, 1}), tensor({3, 3}), tensor({2, 2}));
         },
         "ctc_loss: target_lengths add up to 4 for 3 targets"}}}};
});

}  // namespace
}  // namespace onestep
