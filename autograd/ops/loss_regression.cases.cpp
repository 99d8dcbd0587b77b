#include <cmath>
#include <numbers>

#include "autograd/ops/loss_cases.h"

namespace onestep {
namespace {

using loss_cases::every_reduction;
using loss_cases::pair;

const InputSpec kAny{{2, 3}};

double square(double a, double b) { return (a - b) * (a - b); }
double distance(double a, double b) { return std::abs(a - b); }

auto smooth_l1(double beta) {
  return [beta](double a, double b) {
    const double d = std::abs(a - b);
    return d < beta ? d * d / (2 * beta) : d - beta / 2;
  };
}
auto smooth_l1_with(double beta) {
  return [beta](const Tensor& a, const Tensor& b, Reduction r) { return smooth_l1_loss(a, b, {r, beta}); };
}

auto huber(double delta) {
  return [delta](double a, double b) { return delta * smooth_l1(delta)(a, b); };
}
auto huber_with(double delta) {
  return [delta](const Tensor& a, const Tensor& b, Reduction r) { return huber_loss(a, b, {r, delta}); };
}

std::vector<OpSample> poisson(const std::string& label, bool log_input, bool full) {
  const auto op = [=](const Tensor& x, const Tensor& y, Reduction r) {
    return poisson_nll_loss(x, y, {.reduction = r, .log_input = log_input, .full = full, .eps = 1e-3});
  };
  return every_reduction(label, {{2, 3}, 0.3, 2}, {{2, 3}, 0.1, 4, {1}}, op, [=](double x, double y) {
    const double loss = log_input ? std::exp(x) - y * x : x - y * std::log(x + 1e-3);
    return loss + (full && y > 1 ? y * std::log(y) - y + std::log(2 * std::numbers::pi * y) / 2 : 0);
  });
}

OpSample gaussian(const std::string& label, const Shape& shape, const Shape& var, const GaussianNllOptions& options = {}) {
  return {label,
          {{shape, 0.3, 2}, {shape, 0.3, 2}, {var, 0.3, 2}},
          [options](const std::vector<Tensor>& in) { return gaussian_nll_loss(in[0], in[1], in[2], options); },
          [=](const std::vector<Values>& in) {
            const Values squares = naive::zip(in[0], in[1], square);
            Values spread = in[2];
            if (var.rank() < shape.rank()) spread.shape.push_back(1);
            const auto loss = [&](double s, double v) {
              return (std::log(v) + s / v + (options.full ? std::log(2 * std::numbers::pi) : 0)) / 2;
            };
            return loss_cases::reduced(naive::zip(squares, spread, loss), options.reduction);
          }};
}

const RegisterOpCases registered([] {
  OpCases cases{
      {"mse_loss",
       joined(every_reduction("", kAny, kAny, mse_loss, square),
              {pair("one row", {{2, 3}}, {{3}}, Reduction::mean, mse_loss, square)}),
       {{"shapes",
         [] {
           mse_loss(zeros({2, 3}), zeros({2, 4}));
         },
         "mse_loss: ", is_a<ShapeError>}}},
      {"l1_loss",
       joined(every_reduction("", kAny, kAny, l1_loss, distance),
              {pair("one row", {{2, 3}}, {{3}}, Reduction::sum, l1_loss, distance)}),
       {{"shapes",
         [] {
           l1_loss(zeros({2, 3}), zeros({2, 4}));
         },
         "l1_loss: ", is_a<ShapeError>}}},
      {"smooth_l1_loss",
       joined(joined(every_reduction("", kAny, kAny, smooth_l1_with(1), smooth_l1(1)),
                     every_reduction(" with a small beta", kAny, kAny, smooth_l1_with(0.3), smooth_l1(0.3))),
              {pair("beta 0", {{2, 3}}, {{2, 3}}, Reduction::mean, smooth_l1_with(0), distance)}),
       {{"beta", [] { smooth_l1_loss(zeros(2), zeros(2), {.beta = -1}); }, "smooth_l1_loss: beta cannot be negative: got -1"},
        {"shapes",
         [] {
           smooth_l1_loss(zeros({2, 3}), zeros({2, 4}));
         },
         "smooth_l1_loss: ", is_a<ShapeError>}}},
      {"huber_loss",
       joined(every_reduction("", kAny, kAny, huber_with(1), huber(1)),
              every_reduction(" with a small delta", kAny, kAny, huber_with(0.4), huber(0.4))),
       {{"delta", [] { huber_loss(zeros(2), zeros(2), {.delta = 0}); }, "huber_loss: delta must be positive: got 0"},
        {"integers", [] { huber_loss(zeros(2, DType::int64), zeros(2)); }, "huber_loss: ", is_a<DTypeError>}}},
      {"poisson_nll_loss",
       joined(
           joined(poisson(" of a logarithm", true, false), poisson(" of a rate", false, false)),
           joined(poisson(" of a logarithm with Stirling's term", true, true), poisson(" with Stirling's term", false, true))),
       {{"shapes",
         [] {
           poisson_nll_loss(zeros({2, 3}), zeros({2, 4}));
         },
         "poisson_nll_loss: ", is_a<ShapeError>}}},
      {"gaussian_nll_loss",
       {gaussian("a variance for each", {2, 3}, {2, 3}), gaussian("one variance a row", {2, 3}, {2, 1}),
        gaussian("without the last dim", {2, 3}, {2}, {.reduction = Reduction::sum}),
        gaussian("one row of variances", {2, 3}, {1, 3}, {.reduction = Reduction::none, .full = true}),
        gaussian("nothing", {0, 3}, {0, 3}, {.reduction = Reduction::sum})},
       {{"variance",
         [] {
           gaussian_nll_loss(zeros({2, 3}), zeros({2, 3}), full({2, 3}, -1.0));
         },
         "gaussian_nll_loss: var has a negative element"},
        {"shape of the variance",
         [] {
           gaussian_nll_loss(zeros({2, 3}), zeros({2, 3}), ones({3}));
         },
         "gaussian_nll_loss: var of shape [3] for an input of shape [2, 3] (the same, or one size is 1 or the last one is not "
         "there)"}}}};
  for (OpCase& c : cases) c.samples = without(&OpSample::rounds_once, c.samples);  // made of ops that each round
  return cases;
});

}  // namespace
}  // namespace onestep
