#include <cmath>
#include <limits>
#include <utility>

#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

InputSpec classes(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::int64, .values = std::move(values)};
}

/// Losses of all targets -> the reduced loss.
Values reduced(const Values& losses, Reduction reduction, double counted) {
  if (reduction == Reduction::none) return losses;
  Values y{Shape()};
  for (double loss : losses.data) y[0] += loss;
  if (reduction == Reduction::mean) y[0] /= counted;
  return y;
}

/// loss(scores of one target, number of classes, distance of neighbouring classes, target) of every target that counts.
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
    losses[i] =
        loss(&in[0].data[static_cast<size_t>(i / inner * n * inner + i % inner)], n, inner, static_cast<int64_t>(in[1][i]));
    ++counted;
  }
  return reduced(losses, reduction, counted);
}

OpSample cross_entropy_sample(const std::string& label, const Shape& logits, const InputSpec& target,
                              const CrossEntropyOptions& options = {}) {
  return {label,
          {{logits}, target},
          [options](const std::vector<Tensor>& in) { return cross_entropy(in[0], in[1], options); },
          [options](const std::vector<Values>& in) {
            const double smooth = options.label_smoothing;
            return over_targets(in, options.reduction, static_cast<double>(options.ignore_index),
                                [smooth](const double* x, int64_t n, int64_t step, int64_t wanted) {
                                  double total = 0, loss = 0;
                                  for (int64_t j = 0; j < n; ++j) total += std::exp(x[j * step]);
                                  for (int64_t j = 0; j < n; ++j) {
                                    const double share = smooth / static_cast<double>(n) + (j == wanted ? 1 - smooth : 0);
                                    loss -= share * (x[j * step] - std::log(total));
                                  }
                                  return loss;
                                });
          }};
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
                    int64_t ignore_index = -100) {
  return {label,
          {{scores}, target},
          [=](const std::vector<Tensor>& in) { return nll_loss(in[0], in[1], reduction, ignore_index); },
          [=](const std::vector<Values>& in) {
            return over_targets(in, reduction, static_cast<double>(ignore_index),
                                [](const double* x, int64_t, int64_t step, int64_t wanted) { return -x[wanted * step]; });
          }};
}

OpSample mse_sample(const std::string& label, const Shape& shape, Reduction reduction) {
  return {label,
          {{shape}, {shape}},
          [reduction](const std::vector<Tensor>& in) { return mse_loss(in[0], in[1], reduction); },
          [reduction](const std::vector<Values>& in) {
            Values squares(in[0].shape);
            for (int64_t i = 0; i < squares.shape.numel(); ++i) squares[i] = std::pow(in[0][i] - in[1][i], 2);
            return reduced(squares, reduction, static_cast<double>(squares.data.size()));
          }};
}

const RegisterOpCases
    registered(
        [] {
          return OpCases{
              {"cross_entropy",
               without(
                   &OpSample::takes_int32,
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
                    cross_entropy_sample("more than a chunk of classes", {2, 1500}, classes(2, {3, 1499}),
                                         {.label_smoothing = 0.3}),
                    far_apart(), all_ignored()}),
               {{"class above",
                 [] {
                   cross_entropy(zeros({2, 7}), tensor({0, 9}));
                 },
                 "cross_entropy: target 9 at position 1 is out of range for 7 classes"},
                {"negative class",
                 [] {
                   cross_entropy(zeros({2, 7}), tensor({-1, 0}));
                 },
                 "cross_entropy: target -1 at position 0 is out of range for 7 classes"},
                {"number of targets",
                 [] {
                   cross_entropy(zeros({2, 3}), tensor({0, 1, 2}));
                 },
                 "cross_entropy: targets of shape [3] for scores of shape [2, 3]"},
                {"classes last",
                 [] {
                   cross_entropy(zeros({2, 3, 5}), zeros({2, 3}, DType::int64));
                 },
                 "cross_entropy: targets of shape [2, 3] for scores of shape [2, 3, 5] (the class dim is dim 1: flatten both "
                 "to rows "
                 "first)"},
                {"target dtype",
                 [] {
                   cross_entropy(zeros({2, 3}), zeros(2));
                 },
                 "cross_entropy: targets must be int64 or uint8 class indices: got float32"},
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
                 "cross_entropy: needs a floating dtype: got int64 (convert with x.to(DType::float32))"}}},
              {"nll_loss",
               without(&OpSample::takes_int32,
                       {nll_sample("mean", {5, 4}, classes(5, {1, 0, 3, 3, 2}), Reduction::mean),
                        nll_sample("sum with some ignored", {5, 4}, classes(5, {1, -100, 3, -100, 2}), Reduction::sum),
                        nll_sample("mean with a class ignored", {5, 4}, classes(5, {1, 0, 3, 0, 2}), Reduction::mean, 0),
                        nll_sample("classes in dim 1 of rank 3", {2, 3, 4}, classes({2, 4}, {0, 1, 2, 0, 2, 2, 1, 1}),
                                   Reduction::none),
                        nll_sample("one row without a batch", 4, classes({}, {2}), Reduction::mean),
                        nll_sample("sum over no rows", {0, 3}, classes(0, {}), Reduction::sum)}),
               {{"class above", [] { nll_loss(zeros({2, 7}), tensor({7, 0})); },
                 "nll_loss: target 7 at position 0 is out of range for 7 classes"},
                {"number of targets", [] { nll_loss(zeros({2, 3}), tensor({0})); },
                 "nll_loss: targets of shape [1] for scores of shape [2, 3]"}}},
              {"mse_loss",
               without(&OpSample::rounds_once,
                       {mse_sample("mean", {2, 3}, Reduction::mean), mse_sample("sum", {2, 3}, Reduction::sum),
                        mse_sample("none", {2, 3}, Reduction::none), mse_sample("sum over nothing", {0, 3}, Reduction::sum)}),
               {{"shapes", [] { mse_loss(zeros({2, 3}), zeros({2, 4})); },
                 "mse_loss: shapes do not broadcast: [2, 3] and [2, 4] (sizes 3 and 4 differ at dim -1; one of them would have "
                 "to be "
                 "1)"}}}};
        });

}  // namespace
}  // namespace onestep
