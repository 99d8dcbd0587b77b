#include <cmath>
#include <numbers>

#include "autograd/ops/pointwise_cases.h"
#include "autograd/ops_pointwise.h"

namespace onestep {
namespace {

using namespace pointwise;

double entropy(double x) { return x < 0 ? -kInf : x == 0 ? 0 : -x * std::log(x); }
double scaled_erfc(double x) {
  return x > 20 ? (1 - 1 / (2 * x * x)) / (x * std::sqrt(std::numbers::pi)) : std::exp(x * x) * std::erfc(x);
}
double below(double x) { return std::erfc(-x * std::sqrt(0.5)) / 2; }
double log_below(double x) { return x < 0 ? std::log(below(x)) : std::log1p(-below(-x)); }
double quantile(double p) {
  if (p == 0 || p == 1) return p == 0 ? -kInf : kInf;
  if (!(p > 0 && p < 1)) return kNan;
  double low = -40, high = 40;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (p < 0.5 ? below(middle) < p : below(-middle) > 1 - p) ? low = middle : high = middle;
  }
  return low;
}
/// The modified Bessel function of order N by its series, times exp(-|x|) if SCALED.
template <int N, bool SCALED>
double bessel(double x) {
  if (std::isinf(x)) return SCALED ? 0 : N == 0 ? kInf : x;
  double term = N == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; k < 300; ++k) sum += term *= x * x / 4 / (k * (k + N));
  return SCALED ? sum * std::exp(-std::abs(x)) : sum;
}
double log_times(double x, double y) { return y != y ? y : x == 0 ? 0 : x * std::log1p(y); }

/// The cases of an op of floats.
OpCase floats(const char* name, Tensor (*op)(const Tensor&), double (*f)(double), const Domain& domain,
              const std::vector<double>& special) {
  const auto in_float32 = [f](double x) { return static_cast<double>(static_cast<float>(f(x))); };
  return {
      name, joined(samples(op, f, domain, special), {one("int64", values({0, 1}, DType::int64), op, in_float32, false)}), {}};
}

const RegisterOpCases registered([] {
  const Domain positive = {0.25, 3}, both_signs = {-11, 11, {0}};
  const std::vector<double> special = {-kInf, -25, -10, -3, -1, -1e-9, 0, 1e-9, 0.5, 2, 9.5, 10, 25, kInf, kNan};
  return OpCases{
      floats("entr", entr, entropy, positive, {-1, 0, 1e-9, 0.5, 1, 80, kInf, kNan}),
      floats("erfcx", erfcx, scaled_erfc, {-2, 4}, {-kInf, -5, -1e-9, 0, 0.5, 2, 10, 1e6, kInf, kNan}),
      floats("ndtr", ndtr, below, {-4, 4}, special),
      floats("log_ndtr", log_ndtr, log_below, {-8, 4}, special),
      floats("ndtri", ndtri, quantile, {0.05, 0.95}, {-0.5, 0, 1e-30, 0.003, 0.07, 0.08, 0.5, 0.92, 0.93, 1, 2, kNan}),
      floats("i0", i0, bessel<0, false>, both_signs, special),
      floats("i0e", i0e, bessel<0, true>, both_signs, special),
      floats("i1", i1, bessel<1, false>, both_signs, special),
      floats("i1e", i1e, bessel<1, true>, both_signs, special),
      {"xlog1py",
       joined(pairs(function2<xlog1py>, log_times, {}, {-0.75, 2}, {0, -1, 1, 2, kInf, kNan}),
              {one(
                   "a number", {{3, 4}}, [](const Tensor& x) { return xlog1py(x, 1.5); },
                   [](double x) { return log_times(x, 1.5); }),
               one(
                   "of a number", {{3, 4}, 0.25, 3}, [](const Tensor& y) { return xlog1py(2, y); },
                   [](double y) { return log_times(2, y); }),
               two(
                   "int64", integers({3}), values({1, 2, 3}, DType::int64), function2<xlog1py>,
                   [](double a, double b) { return static_cast<double>(static_cast<float>(log_times(a, b))); }, false)}),
       {}}};
});

}  // namespace
}  // namespace onestep
