#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/ops/pointwise_cases.h"
#include "autograd/ops_pointwise.h"

namespace onestep {
namespace {

using namespace pointwise;

constexpr double kPi = std::numbers::pi;

double erf_inverse(double x) {
  if (std::abs(x) >= 1 || x != x) return std::abs(x) == 1 ? x * kInf : kNan;
  double low = 0, high = 6;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (1 - std::abs(x) < 0.5 ? std::erfc(middle) > 1 - std::abs(x) : std::erf(middle) < std::abs(x)) ? low = middle
                                                                                                   : high = middle;
  }
  return std::copysign(low, x);
}
double sin_over(double x) { return x == 0 ? 1 : std::sin(kPi * x) / (kPi * x); }
double inverse(double x) { return 1 / x; }
double squared(double x) { return x * x; }
double radians(double x) { return x * (kPi / 180); }
double degrees(double x) { return x * (180 / kPi); }
double minus(double x) { return -x; }
double absolute(double x) { return std::abs(x); }
double inverse_root(double x) { return 1 / std::sqrt(x); }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double rectified(double x) { return x < 0 ? 0 : x; }
double sum_of_exponentials(double a, double b) {
  const double larger = std::max(a, b), smaller = std::min(a, b);
  return a == b ? a + std::log(2) : a != a || b != b ? kNan : larger + std::log1p(std::exp(smaller - larger));
}
double log_times(double x, double y) { return y != y ? y : x == 0 ? 0 : x * std::log(y); }
double signed_as(double x, double y) { return std::copysign(x, y); }
double log_odds(double x) { return std::log(x) - std::log(1 - x); }
double turned(double y, double x) { return std::atan2(y, x); }
double length(double x, double y) { return std::hypot(x, y); }
double to_power(double x, double y) { return std::pow(x, y); }

using Unary = Tensor (*)(const Tensor&);

/// The cases of an op of floats and of its in-place form.
OpCases both(const std::string& name, Unary op, Unary op_in_place, double (*f)(double), const Domain& domain,
             const std::vector<double>& special) {
  const auto in_float32 = [f](double x) { return static_cast<double>(static_cast<float>(f(x))); };
  return {{name,
           joined(samples(op, f, domain, special), {one("int64", values({0, 0}, DType::int64), op, in_float32, false),
                                                    one("bool", values({0}, DType::boolean), op, in_float32, false)}),
           {}},
          {name + "_",
           in_place(op_in_place, f, domain),
           {error(
               "int64", [op_in_place] { op_in_place(ones({2}, DType::int64)); }, name + "_: ", is_a<DTypeError>)}}};
}

/// The case of an in-place form alone.
OpCase in_place_only(const char* name, Unary op, double (*f)(double), const Domain& domain) {
  return {name, in_place(op, f, domain), {}};
}

const std::vector<double> kAll = {-kInf, -80, -2, -1, -0.5, -1e-9, 0, 1e-9, 0.5, 1, 2, 80, kInf, kNan};
const Domain kUnit = {-0.9, 0.9}, kPositive = {0.25, 3};

#define ONESTEP_BOTH(NAME, F, ...) both(#NAME, NAME, NAME##_, F, __VA_ARGS__)

const RegisterOpCases registered([] {
  OpCases all;
  for (const OpCases& cases :
       {ONESTEP_BOTH(exp2, libm<std::exp2>, {}, kAll),
        ONESTEP_BOTH(expm1, libm<std::expm1>, {}, kAll),
        ONESTEP_BOTH(log1p, libm<std::log1p>, {-0.75, 2}, kAll),
        ONESTEP_BOTH(log2, libm<std::log2>, kPositive, kAll),
        ONESTEP_BOTH(log10, libm<std::log10>, kPositive, kAll),
        ONESTEP_BOTH(tan, libm<std::tan>, {-1.4, 1.4}, {-100, -2, -1, -0.5, -1e-9, 0, 1e-9, 0.5, 1, 2, 100, kInf, kNan}),
        ONESTEP_BOTH(asin, libm<std::asin>, kUnit, kAll),
        ONESTEP_BOTH(acos, libm<std::acos>, kUnit, kAll),
        ONESTEP_BOTH(atan, libm<std::atan>, {}, kAll),
        ONESTEP_BOTH(sinh, libm<std::sinh>, {}, kAll),
        ONESTEP_BOTH(cosh, libm<std::cosh>, {}, kAll),
        ONESTEP_BOTH(asinh, libm<std::asinh>, {}, kAll),
        ONESTEP_BOTH(acosh, libm<std::acosh>, {1.25, 4}, kAll),
        ONESTEP_BOTH(atanh, libm<std::atanh>, kUnit, kAll),
        ONESTEP_BOTH(erf, libm<std::erf>, {}, kAll),
        ONESTEP_BOTH(erfc, libm<std::erfc>, {}, kAll),
        ONESTEP_BOTH(erfinv, erf_inverse, kUnit, kAll),
        ONESTEP_BOTH(sinc, sin_over, {0.05, 1.9}, {-2, -0.5, 0, 0.25, 1e-9, kNan}),
        ONESTEP_BOTH(reciprocal, inverse, kPositive, kAll),
        ONESTEP_BOTH(deg2rad, radians, {}, kAll),
        ONESTEP_BOTH(rad2deg, degrees, {}, kAll)})
    all.insert(all.end(), cases.begin(), cases.end());
  for (const OpCase& c : OpCases{
           in_place_only("abs_", abs_, absolute, {-2, 2, {0}}),
           in_place_only("neg_", neg_, minus, {}),
           in_place_only("exp_", exp_, libm<std::exp>, {}),
           in_place_only("log_", log_, libm<std::log>, kPositive),
           in_place_only("sqrt_", sqrt_, libm<std::sqrt>, kPositive),
           in_place_only("rsqrt_", rsqrt_, inverse_root, kPositive),
           in_place_only("sin_", sin_, libm<std::sin>, {}),
           in_place_only("cos_", cos_, libm<std::cos>, {}),
           in_place_only("tanh_", tanh_, libm<std::tanh>, {}),
           in_place_only("sigmoid_", sigmoid_, logistic, {}),
           in_place_only("relu_", relu_, rectified, {-2, 2, {0}}),
           in_place_only("square_", square_, squared, {}),
           {"square",
            joined(samples(function<square>, squared, {}, kAll), {one("int64", integers({5}), function<square>, squared, false),
                                                                  one("bool", truths({4}), function<square>, squared, false)}),
            {}}})
    all.push_back(c);
  return all;
});

const std::vector<double> kSome = {-kInf, -2, -0.5, 0, -0.0, 1, 3, kInf, kNan};

const RegisterOpCases pairs_registered([] {
  const auto xlogy_number = [](const Tensor& x) { return xlogy(x, 2.5); };
  const auto power_of_float = [](const Tensor& x, const Tensor& y) { return float_power(x, y).to(x.dtype()); };
  const auto spec = [](const Shape& shape) { return InputSpec{shape, 0.25, 2}; };
  const auto int_pair = [](Tensor (*op)(const Tensor&, const Tensor&)) {
    return [op] { op(zeros({2}, DType::int64), zeros({2}, DType::int64)); };
  };
  return OpCases{
      {"atan2",
       joined(pairs(function2<atan2>, turned, {}, {}, kSome),
              {two(
                  "int64", integers({5}), integers({5}), function2<atan2>,
                  [](double a, double b) { return static_cast<double>(static_cast<float>(std::atan2(a, b))); }, false)}),
       {error(
           "shapes", [] { atan2(zeros({2}), zeros({3})); }, "atan2: ", is_a<ShapeError>)}},
      {"atan2_", in_place_pairs(function2<atan2_>, turned, +spec), {}},
      {"copysign",
       joined(pairs(function2<copysign>, signed_as, {-2, 2, {0}}, {-2, 2, {0}}, kSome),
              {one(
                   "a number", {{3, 4}, -2, 2, {0}}, [](const Tensor& x) { return copysign(x, -1); },
                   [](double x) { return signed_as(x, -1); }),
               two("int64", integers({5}), integers({5}), function2<copysign>, signed_as, false)}),
       {error(
           "shapes", [] { copysign(zeros({2}), zeros({3})); }, "copysign: ", is_a<ShapeError>)}},
      {"logit",
       joined(samples([](const Tensor& x) { return logit(x); }, log_odds, {0.1, 0.9}, {-1, 0, 0.25, 1, 2, kInf, kNan}),
              {one(
                  "within eps", {{3, 4}, -0.5, 1.5, {0.25, 0.75}}, [](const Tensor& x) { return logit(x, 0.25); },
                  [](double x) { return log_odds(std::clamp(x, 0.25, 0.75)); })}),
       {}},
      {"hypot",
       pairs(function2<hypot>, length, {0.25, 2}, {-2, -0.25}, kSome),
       {error("int64", int_pair(hypot), "hypot: ", is_a<DTypeError>)}},
      {"hypot_", in_place_pairs(function2<hypot_>, length, +spec), {}},
      {"logaddexp",
       pairs(function2<logaddexp>, sum_of_exponentials, {}, {}, {-kInf, -500, -1, 0, 3, 500, kInf, kNan}),
       {error("int64", int_pair(logaddexp), "logaddexp: ", is_a<DTypeError>)}},
      {"xlogy",
       joined(pairs(function2<xlogy>, log_times, {}, kPositive, {0, 1, 2, kInf, kNan}),
              {one("a number", {{3, 4}}, xlogy_number, [](double x) { return log_times(x, 2.5); }),
               two(
                   "int64", integers({5}), values({1, 2, 3, 4, 5}, DType::int64), function2<xlogy>,
                   [](double a, double b) { return static_cast<double>(static_cast<float>(log_times(a, b))); }, false)}),
       {}},
      {"xlogy_", in_place_pairs(function2<xlogy_>, log_times, +spec), {}},
      {"float_power",
       joined(pairs(power_of_float, to_power, {0.25, 2}, {}, {0, 0.5, 1, 2, kInf}),
              {two("int64", values({1, 2, 3}, DType::int64), integers({3}), function2<float_power>, to_power, false),
               one(
                   "a number", values({-2, 0, 0.5}), [](const Tensor& x) { return float_power(x, 2).to(x.dtype()); }, squared,
                   false)}),
       {}},
      {"float_power_", in_place_pairs(function2<float_power_>, to_power, +spec), {}},
      {"pow",
       {one(
           "a number to a power", {{3, 4}}, [](const Tensor& x) { return pow(2.5, x); },
           [](double x) { return std::pow(2.5, x); })},
       {}},
      {"xlogy",
       {one(
           "of a number", {{3, 4}, 0.25, 3}, [](const Tensor& y) { return xlogy(2, y); },
           [](double y) { return log_times(2, y); })},
       {}},
      {"float_power",
       {one(
           "a number to a power", {{3, 4}}, [](const Tensor& x) { return float_power(2, x).to(x.dtype()); },
           [](double x) { return std::pow(2, x); })},
       {}},
      {"pow_",
       joined(in_place_pairs(function2<pow_>, to_power, +spec),
              in_place([](const Tensor& x) { return pow_(x, 3); }, [](double x) { return x * x * x; }, {})),
       {}},
  };
});

}  // namespace
}  // namespace onestep
