#include <cmath>

#include "autograd/ops/cases.h"
#include "autograd/ops/naive.h"
#include "autograd/ops_draws.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

/// A draw by its parameters, one after the other with a fresh generator; `shares`: divided by the sums over the last dim.
template <class Op, class F>
OpSample drawn(const char* label, const Shape& shape, std::vector<double> parameters, Op op, F f, bool shares = false) {
  constexpr int64_t seed = 7;
  return {label,
          {values(shape, std::move(parameters))},
          [op](const std::vector<Tensor>& in) {
            Generator generator(seed);
            return op(in[0], generator);
          },
          [f, shares](const std::vector<Values>& in) {
            Generator generator(seed);
            Values y = naive::map(in[0], [&](double v) { return f(v, generator); });
            const int64_t last = shares ? y.shape.back() : 1;
            for (int64_t i = 0; shares && i < y.shape.numel(); i += last) {
              double sum = 0;
              for (int64_t j = 0; j < last; ++j) sum += y[i + j];
              for (int64_t j = 0; j < last; ++j) y[i + j] /= sum;
            }
            return y;
          },
          false};
}

/// How many uniforms have a product above exp(-rate).
double few(double rate, Generator& g) {
  if (rate == 0) return 0;
  double k = 0;
  for (double product = g.d53(); product > std::exp(-rate); product *= g.d53()) ++k;
  return k;
}

/// Trials that succeed, found by the distances between them.
double successes(double count, double p, Generator& g) {
  double k = 0;
  for (double passed = 0; count > 0; ++k) {
    passed += std::ceil(std::log(g.d53()) / std::log1p(-p));
    if (passed > count) break;
  }
  return k;
}

/// Marsaglia and Tsang's, without the squeeze.
double gamma_of(double alpha, Generator& g) {
  const double boost = alpha < 1 ? std::pow(1 - g.d53(), 1 / alpha) : 1, d = (alpha < 1 ? alpha + 1 : alpha) - 1.0f / 3;
  for (;;) {
    const double x = g.normal(), v = std::pow(1 + x / std::sqrt(9 * d), 3);
    if (v <= 0) continue;
    const double u = 1 - g.d53();
    if (std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return boost * d * v;
  }
}

const RegisterOpCases registered([] {
  const auto binomial_of = [](double p) {
    return [p](const Tensor& count, Generator& g) { return binomial(count, full_like(count, p), g); };
  };
  const Tensor nan = tensor({kNan}), minus = tensor({1.0, -1.0});
  return OpCases{
      {"standard_gamma",
       {drawn("vector", 6, {0.2, 0.5, 1, 2.5, 40, 1000}, standard_gamma, gamma_of),
        drawn("none", {0, 3}, {}, standard_gamma, gamma_of)},
       {refused(
            "negative", [minus] { standard_gamma(minus); }, "standard_gamma: alpha must be finite and at least 0: got -1"),
        {"integers",
         [] {
           standard_gamma(tensor({1, 2}));
         },
         "standard_gamma: ", is_a<DTypeError>}}},
      {"sample_dirichlet",
       {drawn("rows", {2, 3}, {0.5, 1, 2, 30, 4, 0.1}, sample_dirichlet, gamma_of, true),
        drawn("no rows", {0, 3}, {}, sample_dirichlet, gamma_of, true)},
       {refused(
            "NaN", [nan] { sample_dirichlet(nan); }, "sample_dirichlet: alpha must be finite and at least 0: got nan"),
        {"a number", [] { sample_dirichlet(tensor(1.0)); }, "sample_dirichlet: alpha needs a last dim of categories",
         is_a<ShapeError>}}},
      {"poisson",
       {drawn("few", 5, {0, 0.25, 3, 9.75, 1}, poisson, few), drawn("none", {0, 2}, {}, poisson, few)},
       {refused(
           "negative", [minus] { poisson(minus); }, "poisson: rate must be finite and at least 0: got -1")}},
      {"binomial",
       {drawn("few", 4, {1, 10, 30, 0}, binomial_of(0.25), [](double n, Generator& g) { return successes(n, 0.25, g); }),
        drawn("none", {0, 2}, {}, binomial_of(0.25), few),
        drawn("most", 3, {1, 10, 30}, binomial_of(0.75), [](double n, Generator& g) { return n - successes(n, 0.25, g); })},
       {refused(
            "negative", [minus] { binomial(minus, minus); }, "binomial: count must be finite and at least 0: got -1"),
        {"dtypes", [minus] { binomial(minus, minus.to(DType::float64)); }, "binomial: ", is_a<DTypeError>}}}};
});

}  // namespace
}  // namespace onestep
