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
                 {"polygamma",
                  joined(polygamma_samples<1>(), polygamma_samples<3>()),
                  {error(
                      "order", [] { polygamma(-1, ones({1})); }, "polygamma: n is -1, not one of 0 to 170")}}};
});

}  // namespace
}  // namespace onestep
