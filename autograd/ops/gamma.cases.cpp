#include <cmath>
#include <numbers>

#include "autograd/ops/pointwise_cases.h"
#include "autograd/ops_pointwise.h"

namespace onestep {
namespace {

using namespace pointwise;

/// Hurwitz's zeta function: a sum, and the integral of what is left with a correction.
double zeta(int s, double x) {
  constexpr int terms = 2000;
  double sum = 0;
  for (int i = terms - 1; i >= 0; --i) sum += std::pow(x + i, -s);
  const double rest = x + terms;
  return sum + std::pow(rest, 1 - s) / (s - 1) + std::pow(rest, -s) / 2 + s * std::pow(rest, -s - 1) / 12;
}
template <int N>
double polygamma_of(double x) {
  return (N % 2 == 0 ? -1 : 1) * std::tgamma(N + 1) * (x == 0 ? kInf : zeta(N + 1, x));
}
/// The gamma function's logarithmic derivative, from where its asymptotic series has all digits.
double psi(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (x < 0) return x == std::floor(x) ? kNan : psi(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * x);
  constexpr int steps = 1000;
  double sum = 0;
  for (int i = 0; i < steps; ++i) sum += 1 / (x + i);
  const double far = x + steps;
  return std::log(far) - 1 / (2 * far) - 1 / (12 * far * far) - sum;
}

/// Simpson's rule.
template <class F>
double integral(F f, double from, double to) {
  constexpr int parts = 8000;
  const double step = (to - from) / parts;
  double sum = 0;
  for (int i = 0; i < parts; ++i) sum += f(from + i * step) + 4 * f(from + (i + 0.5) * step) + f(from + (i + 1) * step);
  return sum * step / 6;
}
/// The part of the gamma distribution below x, over t = x u^10: so t^(a - 1) begins smoothly.
double below(double a, double x) {
  if (a < 0 || x < 0 || std::isnan(x) || (a == 0 && x == 0)) return kNan;
  if (x == 0 || a == 0) return x > 0 ? 1 : 0;
  const auto rate = [=](double u) {  // the density times dt / du
    return u == 0 ? 0 : 10 * std::exp(a * std::log(x) + (10 * a - 1) * std::log(u) - x * std::pow(u, 10) - std::lgamma(a));
  };
  return integral(rate, 0, 1);
}
/// And above, over t = x + u^2.
double above(double a, double x) {
  if (a <= 0 || x <= 0 || std::isnan(x)) return 1 - below(a, x);
  const auto rate = [=](double u) {
    const double t = x + u * u;
    return 2 * u * std::exp((a - 1) * std::log(t) - t - std::lgamma(a));
  };
  return integral(rate, 0, std::sqrt(60 + 2 * a));
}

/// OP(a, x) for six given a in the last dim, by which there is no gradient.
template <auto OP, class F>
OpSample by_parameters(const char* label, const Shape& shape, F f) {
  constexpr double a[] = {0.5, 0.75, 1, 2.5, 7, 20};
  return {label,
          {{.shape = shape, .low = 0.1, .high = 12}},
          [=](const std::vector<Tensor>& in) {
            return OP(to(tensor({a[0], a[1], a[2], a[3], a[4], a[5]}), in[0].dtype()), in[0]);
          },
          [=](const std::vector<Values>& in) {
            Values y = in[0];
            for (int64_t i = 0; i < y.shape.numel(); ++i) y[i] = f(a[i % 6], in[0][i]);
            return y;
          }};
}
template <auto OP, class F>
std::vector<OpSample> incomplete(F f) {
  return {by_parameters<OP>("matrix", {3, 6}, f), by_parameters<OP>("empty", {0, 6}, f),
          two(
              "special values", values({0, 0, 1, 2, -1, 2, 30}), values({0, 1, 0, -1, 2, kNan, 28}),
              [](const Tensor& p, const Tensor& x) { return OP(p, x); }, f, false)};
}

template <int N>
std::vector<OpSample> polygamma_samples() {
  return samples([](const Tensor& x) { return polygamma(N, x); }, polygamma_of<N>, {0.25, 12}, {0, 0.5, 1, 30, kNan});
}

const RegisterOpCases registered([] {
  const std::vector<double> special = {-2.5, -1, -0.75, 0, 1e-9, 0.5, 1, 2, 80, kInf, kNan};
  const Domain positive = {0.25, 12}, negative = {-3.75, -3.25};
  const auto log_gamma = [](double x) { return std::lgamma(x); };
  return OpCases{{"lgamma",
                  joined(samples(function<lgamma>, log_gamma, positive, special),
                         joined(samples(function<lgamma>, log_gamma, negative, {}),
                                {one("int64", values({1, 4}, DType::int64), function<lgamma>, log_gamma, false)})),
                  {}},
                 {"lgamma_", in_place(function<lgamma_>, log_gamma, positive), {}},
                 {"digamma",
                  joined(samples(function<digamma>, psi, positive, special), samples(function<digamma>, psi, negative, {})),
                  {}},
                 {"digamma_", in_place(function<digamma_>, psi, positive), {}},
                 {"igamma",
                  incomplete<igamma>(below),
                  {error(
                      "dtypes", [] { igamma(ones(2), ones(2, DType::float64)); },
                      "igamma: dtypes differ: float32 and float64 (convert one with to())")}},
                 {"igammac", incomplete<igammac>(above), {}},
                 {"polygamma",
                  joined(polygamma_samples<1>(), polygamma_samples<3>()),
                  {error(
                      "order", [] { polygamma(-1, ones({1})); }, "polygamma: n is -1, not one of 0 to 170")}}};
});

}  // namespace
}  // namespace onestep
