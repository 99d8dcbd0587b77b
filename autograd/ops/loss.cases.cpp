#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "autograd/ops/loss_cases.h"

namespace onestep {
namespace {

InputSpec classes(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::int64, .values = std::move(values)};
}

using loss_cases::reduced;

/// loss(scores of one target, number of classes, distance of neighbouring classes, target) of every target that counts; the
/// third input holds the weights of classes, if it is there.
template <class F>
Values over_targets(const std::vector<Values>& in, Reduction reduction, double ignore_index, F loss) {
  const Shape& shape = in[0].shape;
  const int64_t n = shape[shape.rank() > 1 ? 1 : 0];
  int64_t inner = 1;
  for (int i = 2; i < shape.rank(); ++i) inner *= shape[i];
  Values losses(in[1].shape);
  double counted = 0;
  for (int64_t i = 0; i < losses.shape.numel(); ++i) {
    if (in[1][i] == ignore_index) continue;
    const auto wanted = static_cast<int64_t>(in[1][i]);
    losses[i] = loss(&in[0].data[static_cast<size_t>(i / inner * n * inner + i % inner)], n, inner, wanted);
    counted += in.size() > 2 ? in[2][wanted] : 1;
  }
  return reduced(losses, reduction, counted);
}

/// -sum_j share(j) log softmax(x)_j
template <class F>
double cross_entropy_of(const double* x, int64_t n, int64_t step, F share) {
  double total = 0, loss = 0;
  for (int64_t j = 0; j < n; ++j) total += std::exp(x[j * step]);
  for (int64_t j = 0; j < n; ++j) loss -= share(j) * (x[j * step] - std::log(total));
  return loss;
}

constexpr double kLow = 0.2, kHigh = 2;  // of weights

OpSample cross_entropy_sample(const std::string& label, const Shape& logits, const InputSpec& target,
                              const CrossEntropyOptions& options = {}, bool weighted = false) {
  OpSample sample = {label,
                     {{logits}, target},
                     [options](const std::vector<Tensor>& in) {
                       CrossEntropyOptions o = options;
                       if (in.size() > 2) o.weight = in[2];
                       return cross_entropy(in[0], in[1], o);
                     },
                     [options](const std::vector<Values>& in) {
                       const double smooth = options.label_smoothing;
                       const auto loss = [&](const double* x, int64_t n, int64_t step, int64_t wanted) {
                         return cross_entropy_of(x, n, step, [&](int64_t j) {
                           const double share = smooth / static_cast<double>(n) + (j == wanted ? 1 - smooth : 0);
                           return share * (in.size() > 2 ? in[2][j] : 1);
                         });
                       };
                       return over_targets(in, options.reduction, static_cast<double>(options.ignore_index), loss);
                     }};
  if (weighted) sample.inputs.push_back({{logits[logits.rank() > 1 ? 1 : 0]}, kLow, kHigh});
  return sample;
}

/// Targets that give each class a probability.
OpSample probabilities_sample(const std::string& label, const Shape& shape, const CrossEntropyOptions& options = {},
                              bool weighted = false) {
  const int64_t n = shape[shape.rank() > 1 ? 1 : 0];
  OpSample sample = {label,
                     {{shape}, {shape, 0, 1}},
                     [options](const std::vector<Tensor>& in) {
                       CrossEntropyOptions o = options;
                       if (in.size() > 2) o.weight = in[2];
                       return cross_entropy(in[0], in[1], o);
                     },
                     [=](const std::vector<Values>& in) {
                       Shape rows = shape;
                       rows.erase(shape.rank() > 1 ? 1 : 0);
                       Values losses(rows);
                       const int64_t count = rows.numel(),
                                     inner = shape.rank() > 1 ? count / std::max<int64_t>(shape[0], 1) : 1;
                       for (int64_t i = 0; i < count; ++i) {
                         const int64_t first = i / inner * n * inner + i % inner;
                         losses[i] = cross_entropy_of(&in[0].data[static_cast<size_t>(first)], n, inner, [&](int64_t j) {
                           const double given = in[1][first + j * inner], smooth = options.label_smoothing;
                           const double share = given * (1 - smooth) + smooth / static_cast<double>(n);
                           return share * (in.size() > 2 ? in[2][j] : 1);
                         });
                       }
                       return reduced(losses, options.reduction, static_cast<double>(count));
                     }};
  if (weighted) sample.inputs.push_back({{n}, kLow, kHigh});
  return sample;
}

/// Scores far apart: nothing overflows, and a small loss keeps its digits.
OpSample far_apart() {
  return {.label = "widely spread logits",
          .inputs = {{.shape = {3, 3}, .values = {1000, 990, -1000, -1000, 0, 16, 1e4, 1e4, -1e4}}, classes(3, {0, 2, 1})},
          .forward = [](const std::vector<Tensor>& in) { return cross_entropy(in[0], in[1], {.reduction = Reduction::none}); },
          .reference =
              [](const std::vector<Values>&) {
                Values y(3);
                y.data = {std::log1p(std::exp(-10.0)), std::log1p(std::exp(-16.0)), std::log(2.0)};
                return y;
              },
          .twice_differentiable = false};  // differences at 1e4 take steps that are too long for the gradient
}

/// The mean over no target.
OpSample all_ignored() {
  return {.label = "all ignored",
          .inputs = {{{2, 3}}, classes(2, {-100, -100})},
          .forward = [](const std::vector<Tensor>& in) { return cross_entropy(in[0], in[1]); },
          .reference =
              [](const std::vector<Values>&) {
                Values y{Shape()};
                y[0] = std::numeric_limits<double>::quiet_NaN();
                return y;
              },
          .differentiable = false};
}

OpSample nll_sample(const std::string& label, const Shape& scores, const InputSpec& target, Reduction reduction,
                    int64_t ignore_index = -100, bool weighted = false) {
  OpSample sample = {label,
                     {{scores}, target},
                     [=](const std::vector<Tensor>& in) {
                       return nll_loss(in[0], in[1], reduction, ignore_index, in.size() > 2 ? in[2] : Tensor());
                     },
                     [=](const std::vector<Values>& in) {
                       const auto loss = [&](const double* x, int64_t, int64_t step, int64_t wanted) {
                         return -x[wanted * step] * (in.size() > 2 ? in[2][wanted] : 1);
                       };
                       return over_targets(in, reduction, static_cast<double>(ignore_index), loss);
                     }};
  if (weighted) sample.inputs.push_back({{scores[scores.rank() > 1 ? 1 : 0]}, kLow, kHigh});
  return sample;
}

OpSample multi_margin_sample(const std::string& label, const Shape& scores, const InputSpec& target,
                             const MultiMarginOptions& options = {}, bool weighted = false) {
  const int64_t n = scores[scores.rank() - 1];
  OpSample sample = {label,
                     {{scores}, target},
                     [options](const std::vector<Tensor>& in) {
                       MultiMarginOptions o = options;
                       if (in.size() > 2) o.weight = in[2];
                       return multi_margin_loss(in[0], in[1], o);
                     },
                     [=](const std::vector<Values>& in) {
                       Values losses(in[1].shape);
                       for (int64_t i = 0; i < losses.shape.numel(); ++i) {
                         const auto wanted = static_cast<int64_t>(in[1][i]);
                         for (int64_t j = 0; j < n; ++j) {
                           const double over = options.margin - in[0][i * n + wanted] + in[0][i * n + j];
                           const double weight = in.size() > 2 ? in[2][wanted] : 1;
                           if (j != wanted && over > 0)
                             losses[i] += weight * std::pow(over, options.p) / static_cast<double>(n);
                         }
                       }
                       return reduced(losses, options.reduction, static_cast<double>(losses.data.size()));
                     }};
  if (weighted) sample.inputs.push_back({{n}, kLow, kHigh});
  return sample;
}

const RegisterOpCases registered([] {
  OpCases cases{
      {"cross_entropy",
       {cross_entropy_sample("mean", {5, 4}, classes(5, {1, 0, 3, 3, 2})),
        cross_entropy_sample("sum", {5, 4}, classes(5, {1, 0, 3, 3, 2}), {.reduction = Reduction::sum}),
        cross_entropy_sample("none", {5, 4}, classes(5, {1, 0, 3, 3, 2}), {.reduction = Reduction::none}),
        cross_entropy_sample("some ignored", {5, 4}, classes(5, {1, -100, 3, -100, 2})),
        cross_entropy_sample("a class ignored", {5, 4}, classes(5, {1, 0, 3, 0, 2}),
                             {.reduction = Reduction::none, .ignore_index = 0}),
        cross_entropy_sample("smoothing", {5, 4}, classes(5, {1, 0, 3, -100, 2}), {.label_smoothing = 0.1}),
        cross_entropy_sample("one row without a batch", 4, classes({}, {2})),
        cross_entropy_sample("classes in dim 1 of rank 3", {2, 3, 4}, classes({2, 4}, {0, 1, 2, 0, 2, 2, -100, 1})),
        cross_entropy_sample("classes in dim 1 of rank 4", {2, 3, 1, 2}, classes({2, 1, 2}, {0, 1, 2, 0}),
                             {.reduction = Reduction::none, .label_smoothing = 0.2}),
        cross_entropy_sample("sum over no rows", {0, 3}, classes(0, {}), {.reduction = Reduction::sum}),
        cross_entropy_sample("more than a chunk of classes", {2, 1500}, classes(2, {3, 1499}), {.label_smoothing = 0.3}),
        cross_entropy_sample("weights", {5, 4}, classes(5, {1, -100, 3, 3, 2}), {}, true),
        cross_entropy_sample("weights and smoothing", {2, 3, 4}, classes({2, 4}, {0, 1, 2, 0, 2, 2, -100, 1}),
                             {.label_smoothing = 0.2}, true),
        cross_entropy_sample("sum of weights and smoothing", {5, 4}, classes(5, {1, 0, 3, 3, 2}),
                             {.reduction = Reduction::sum, .ignore_index = 0, .label_smoothing = 0.3}, true),
        cross_entropy_sample("weights without a batch", 4, classes({}, {2}), {.reduction = Reduction::none}, true),
        probabilities_sample("probabilities", {5, 4}),
        probabilities_sample("probabilities with smoothing", {5, 4}, {.reduction = Reduction::sum, .label_smoothing = 0.3}),
        probabilities_sample("probabilities with weights", {2, 3, 4}, {.reduction = Reduction::none, .label_smoothing = 0.1},
                             true),
        probabilities_sample("probabilities without a batch", 4, {}, true),
        probabilities_sample("no probabilities", {0, 3}, {.reduction = Reduction::sum}),
        far_apart(),
        all_ignored()},
       {{"class above",
         [] {
           cross_entropy(zeros({2, 7}), tensor({0, 9}));
         },
         "cross_entropy: target 9 at position 1 is out of range for 7 classes"},
        {"negative class",
         [] {
           cross_entropy(zeros({2, 7}), tensor({-1, 0}));
         },
         "cross_entropy: ", is_a<IndexError>},
        {"number of targets",
         [] {
           cross_entropy(zeros({2, 3}), tensor({0, 1, 2}));
         },
         "cross_entropy: targets of shape [3] for scores of shape [2, 3]"},
        {"classes last",
         [] {
           cross_entropy(zeros({2, 3, 5}), zeros({2, 3}, DType::int64));
         },
         "cross_entropy: targets of shape [2, 3] for scores of shape [2, 3, 5] (the class dim is dim 1: flatten both to rows "
         "first)"},
        {"target dtype",
         [] {
           cross_entropy(zeros({2, 3}), zeros(2));
         },
         "cross_entropy: targets must be int64 or uint8 class indices: got float32"},
        {"weights",
         [] {
           cross_entropy(zeros({2, 3}), tensor({0, 1}), {.weight = ones(4)});
         },
         "cross_entropy: weight needs one value for each of 3 classes: got shape [4]"},
        {"dtype of weights",
         [] {
           cross_entropy(zeros({2, 3}), tensor({0, 1}), {.weight = ones(3, DType::float64)});
         },
         "cross_entropy: ", is_a<DTypeError>},
        {"probabilities and an ignored class",
         [] {
           cross_entropy(zeros({2, 3}), zeros({2, 3}), {.ignore_index = 1});
         },
         "cross_entropy: ignore_index does not go with probabilities: got 1"},
        {"batchmean",
         [] {
           cross_entropy(zeros({2, 3}), tensor({0, 1}), {.reduction = Reduction::batchmean});
         },
         "cross_entropy: batchmean is a reduction of kl_div alone"},
        {"no class dim", [] { cross_entropy(zeros({}), zeros({}, DType::int64)); },
         "cross_entropy: needs a class dim: got shape []"},
        {"smoothing",
         [] {
           cross_entropy(zeros({1, 3}), tensor({0}), {.label_smoothing = 1.5});
         },
         "cross_entropy: label_smoothing must lie in [0, 1]: got 1.5"},
        {"integers",
         [] {
           cross_entropy(zeros({1, 3}, DType::int64), tensor({0}));
         },
         "cross_entropy: ", is_a<DTypeError>}}},
      {"nll_loss",
       {nll_sample("mean", {5, 4}, classes(5, {1, 0, 3, 3, 2}), Reduction::mean),
        nll_sample("sum with some ignored", {5, 4}, classes(5, {1, -100, 3, -100, 2}), Reduction::sum),
        nll_sample("mean with a class ignored", {5, 4}, classes(5, {1, 0, 3, 0, 2}), Reduction::mean, 0),
        nll_sample("classes in dim 1 of rank 3", {2, 3, 4}, classes({2, 4}, {0, 1, 2, 0, 2, 2, 1, 1}), Reduction::none),
        nll_sample("one row without a batch", 4, classes({}, {2}), Reduction::mean),
        nll_sample("weighted mean", {5, 4}, classes(5, {1, -100, 3, 3, 2}), Reduction::mean, -100, true),
        nll_sample("weighted", {2, 3, 4}, classes({2, 4}, {0, 1, 2, 0, 2, 2, 1, 1}), Reduction::none, 1, true),
        nll_sample("sum over no rows", {0, 3}, classes(0, {}), Reduction::sum)},
       {{"class above", [] { nll_loss(zeros({2, 7}), tensor({7, 0})); }, "nll_loss: ", is_a<IndexError>},
        {"number of targets", [] { nll_loss(zeros({2, 3}), tensor({0})); },
         "nll_loss: targets of shape [1] for scores of shape [2, 3]"},
        {"weights", [] { nll_loss(zeros({2, 3}), tensor({0, 1}), Reduction::mean, -100, ones({3, 1})); },
         "nll_loss: weight needs one value for each of 3 classes: got shape [3, 1]"}}},
      {"multi_margin_loss",
       {multi_margin_sample("mean", {3, 4}, classes(3, {1, 0, 3})),
        multi_margin_sample("squares", {3, 4}, classes(3, {1, 0, 3}), {.reduction = Reduction::none, .p = 2, .margin = 0.7}),
        multi_margin_sample("weights", {3, 4}, classes(3, {1, 0, 3}), {.reduction = Reduction::sum}, true),
        multi_margin_sample("one row without a batch", 4, classes({}, {2})),
        multi_margin_sample("sum over no rows", {0, 3}, classes(0, {}), {.reduction = Reduction::sum})},
       {{"p", [] { multi_margin_loss(zeros({2, 3}), tensor({0, 1}), {.p = 3}); }, "multi_margin_loss: p must be 1 or 2: got 3"},
        {"rank", [] { multi_margin_loss(zeros({2, 3, 4}), tensor({0, 1})); },
         "multi_margin_loss: needs scores [C] or [N, C] and targets [] or [N]: got [2, 3, 4] and [2]"},
        {"class above", [] { multi_margin_loss(zeros({2, 3}), tensor({0, 3})); }, "multi_margin_loss: ", is_a<IndexError>}}}};
  for (OpCase& c : cases) c.samples = without(&OpSample::takes_int32, c.samples);  // class indices
  return cases;
});

}  // namespace
}  // namespace onestep
