#include <cmath>

#include "autograd/ops/loss_cases.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using loss_cases::every_reduction;
using loss_cases::pair;

double binary(double p, double y) { return -y * std::log(p) - (1 - y) * std::log(1 - p); }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double binary_of_logit(double x, double y) { return binary(sigmoid_of(x), y); }

Tensor binary_with(const Tensor& p, const Tensor& y, Reduction r) { return binary_cross_entropy(p, y, {r}); }
Tensor logits_with(const Tensor& x, const Tensor& y, Reduction r) { return binary_cross_entropy_with_logits(x, y, {r}); }

const InputSpec kAny{{2, 3}}, kProbability{{2, 3}, 0.05, 0.95}, kLogarithm{{2, 3}, -3, 0};

/// A third input weighs the losses.
OpSample weighted(const std::string& label, const Shape& weight, bool logits) {
  return {label,
          {logits ? InputSpec{{2, 3}} : InputSpec{{2, 3}, 0.05, 0.95}, {{2, 3}, 0.05, 0.95}, {weight, 0.1, 0.9}},
          [=](const std::vector<Tensor>& in) {
            return logits ? binary_cross_entropy_with_logits(in[0], in[1], {.weight = in[2]})
                          : binary_cross_entropy(in[0], in[1], {.weight = in[2]});
          },
          [=](const std::vector<Values>& in) {
            const Values losses = naive::zip(in[0], in[1], logits ? binary_of_logit : binary);
            return loss_cases::reduced(naive::zip(losses, in[2], [](double a, double w) { return a * w; }), Reduction::mean);
          }};
}

OpSample with_pos_weight() {
  return {"weight of the positive class",
          {{{2, 3}}, {{2, 3}, 0, 1}, {{3}, 0.2, 3}},
          [](const std::vector<Tensor>& in) {
            return binary_cross_entropy_with_logits(in[0], in[1], {.reduction = Reduction::none, .pos_weight = in[2]});
          },
          [](const std::vector<Values>& in) {
            Values losses({2, 3});
            for (int64_t i = 0; i < 6; ++i) {
              const double p = sigmoid_of(in[0][i]), y = in[1][i];
              losses[i] = -in[2][i % 3] * y * std::log(p) - (1 - y) * std::log(1 - p);
            }
            return losses;
          }};
}

/// Logarithms of 0 count as -100, and only where something multiplies them.
OpSample certain() {
  return {.label = "certain",
          .inputs = {{.shape = 4, .values = {0, 0, 1, 1}}, {.shape = 4, .values = {0, 1, 0.5, 1}}},
          .forward = [](const std::vector<Tensor>& in) { return binary_with(in[0], in[1], Reduction::none); },
          .reference =
              [](const std::vector<Values>&) {
                Values y(4);
                y.data = {0, 100, 50, 0};
                return y;
              },
          .differentiable = false};
}

/// Nothing overflows, and a small loss keeps its digits.
OpSample large_logits() {
  return {.label = "large logits",
          .inputs = {{.shape = 4, .values = {1000, -1000, 20, 0}}, {.shape = 4, .values = {1, 1, 1, 0.5}}},
          .forward = [](const std::vector<Tensor>& in) { return logits_with(in[0], in[1], Reduction::none); },
          .reference =
              [](const std::vector<Values>&) {
                Values y(4);
                y.data = {0, 1000, std::log1p(std::exp(-20.0)), std::log(2.0)};
                return y;
              }};
}

OpSample multilabel(const std::string& label, const Shape& shape, const BinaryCrossEntropyOptions& options) {
  return {label,
          {{shape}, {shape, 0, 1}, {{shape.back()}, 0.2, 2}},
          [options](const std::vector<Tensor>& in) {
            BinaryCrossEntropyOptions o = options;
            o.weight = in[2];
            return multilabel_soft_margin_loss(in[0], in[1], o);
          },
          [options](const std::vector<Values>& in) {
            Values losses = naive::zip(in[0], in[1], binary_of_logit);
            losses = naive::zip(losses, in[2], [](double a, double w) { return a * w; });
            losses = naive::reduce(losses, {-1}, false, [](const std::vector<double>& row) {
              double total = 0;
              for (double v : row) total += v;
              return total / static_cast<double>(row.size());
            });
            return loss_cases::reduced(losses, options.reduction);
          }};
}

OpSample integer_targets() {
  return {"integer targets",
          {{{2, 2}}},
          [](const std::vector<Tensor>& in) {
            return multilabel_soft_margin_loss(in[0], tensor({{0, 1}, {1, 1}}));
          },
          [](const std::vector<Values>& in) {
            Values y{Shape()};
            for (int64_t i = 0; i < 4; ++i) y.data[0] += binary_of_logit(in[0][i], i > 0) / 4;
            return y;
          }};
}

Tensor divergence(const Tensor& x, const Tensor& y, Reduction r) { return kl_div(x, y, {r}); }
Tensor log_divergence(const Tensor& x, const Tensor& y, Reduction r) { return kl_div(x, y, {r, true}); }

OpSample batchmean(bool log_target) {
  return {log_target ? "batchmean of logarithms" : "batchmean",
          {{{2, 3}, -3, 0}, {{2, 3}, 0.1, 1}},
          [=](const std::vector<Tensor>& in) {
            return kl_div(in[0], in[1], {Reduction::batchmean, log_target});
          },
          [=](const std::vector<Values>& in) {
            Values y{Shape()};
            for (int64_t i = 0; i < 6; ++i) {
              const double t = in[1][i];
              y[0] += (log_target ? std::exp(t) * (t - in[0][i]) : t * (std::log(t) - in[0][i])) / 2;
            }
            return y;
          }};
}

OpSample zero_log_zero() {
  OpSample sample = pair("0 log 0", {3, -3, 0}, {.shape = 3, .values = {0, 1, 0}}, Reduction::none, divergence,
                         [](double x, double y) { return -x * y; });
  sample.differentiable = false;  // not by differences: the logarithm of a negative number is NaN
  return sample;
}

const std::string kNotTheSame = ": input of shape [2, 3] for a target of shape [3]";

const RegisterOpCases registered([] {
  OpCases cases{
      {"binary_cross_entropy",
       joined(every_reduction("", kProbability, kProbability, binary_with, binary),
              {weighted("weights", {2, 3}, false), weighted("a weight a row", {2, 1}, false), certain()}),
       {{"shapes",
         [] {
           binary_cross_entropy(zeros({2, 3}), zeros(3));
         },
         "binary_cross_entropy" + kNotTheSame},
        {"input",
         [] {
           binary_cross_entropy(tensor({0.5, 1.5}), zeros(2));
         },
         "binary_cross_entropy: the input must lie in [0, 1]"},
        {"target",
         [] {
           binary_cross_entropy(zeros(2), tensor({0.0, -1.0}));
         },
         "binary_cross_entropy: the target must lie in [0, 1]"},
        {"weight",
         [] {
           binary_cross_entropy(zeros(3), zeros(3), {.weight = ones({2, 3})});
         },
         "binary_cross_entropy: ", is_a<ShapeError>},
        {"dtypes", [] { binary_cross_entropy(zeros(2), zeros(2, DType::int64)); },
         "binary_cross_entropy: ", is_a<DTypeError>}}},
      {"binary_cross_entropy_with_logits",
       joined(every_reduction("", kAny, kProbability, logits_with, binary_of_logit),
              {weighted("weights", {3}, true), with_pos_weight(), large_logits()}),
       {{"shapes",
         [] {
           binary_cross_entropy_with_logits(zeros({2, 3}), zeros(3));
         },
         "binary_cross_entropy_with_logits" + kNotTheSame}}},
      {"multilabel_soft_margin_loss",
       {multilabel("mean", {2, 3}, {}), multilabel("none", {2, 3}, {.reduction = Reduction::none}),
        multilabel("one row", 3, {.reduction = Reduction::sum}), multilabel("no rows", {0, 3}, {.reduction = Reduction::sum}),
        integer_targets()},
       {{"shapes",
         [] {
           multilabel_soft_margin_loss(zeros({2, 3}), zeros(3));
         },
         "multilabel_soft_margin_loss" + kNotTheSame}}},
      {"soft_margin_loss",
       every_reduction("", kAny, kAny, soft_margin_loss, [](double x, double y) { return std::log1p(std::exp(-x * y)); }),
       {{"batchmean", [] { soft_margin_loss(zeros(2), zeros(2), Reduction::batchmean); },
         "soft_margin_loss: ", is_a<ConfigError>}}},
      {"kl_div",
       joined(joined(every_reduction("", kLogarithm, kProbability, divergence,
                                     [](double x, double y) { return y * (std::log(y) - x); }),
                     every_reduction(" of logarithms", kLogarithm, kLogarithm, log_divergence,
                                     [](double x, double y) { return std::exp(y) * (y - x); })),
              {batchmean(false), batchmean(true), zero_log_zero()}),
       {{"integers", [] { kl_div(zeros(2, DType::int64), zeros(2)); }, "kl_div: ", is_a<DTypeError>}}}};
  for (OpCase& c : cases) c.samples = without(&OpSample::rounds_once, c.samples);  // made of ops that each round
  return cases;
});

}  // namespace
}  // namespace onestep
