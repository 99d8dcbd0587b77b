#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/ops/pointwise_cases.h"
#include "autograd/ops_pointwise.h"
#include "autograd/tensor_index.h"

namespace onestep {
namespace {

using namespace pointwise;

/// Enough elements that threads share the work.
template <class Op, class F>
OpSample large(Op op, F f) {
  return {"large",
          {{{300, 250}}},
          [op](const std::vector<Tensor>& in) { return op(in[0]); },
          [f](const std::vector<Values>& in) { return naive::map(in[0], f); }};
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_erf(double x) { return x * 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }
double absolute(double x) { return x < 0 ? -x : x == 0 ? 0 : x; }
double rectified(double x) { return x < 0 ? 0 : x; }

constexpr auto gelu_none = [](const Tensor& x) { return gelu(x); };
constexpr auto gelu_approximate = [](const Tensor& x) { return gelu(x, GeluApproximation::tanh); };

/// An int64 tensor stays one.
template <class Op, class F>
OpSample of_integers(Op op, F f) {
  return one("int64", values({-3, -1, 0, 1, 7}, DType::int64), op, f, false);
}

OpError refused(const char* op, Tensor (*call)(const Tensor&), DType dtype, const char* message) {
  return {std::string(name(dtype)), [=] { call(zeros({2}, dtype)); }, std::string(op) + ": " + message, is_a<DTypeError>};
}

constexpr const char* kBool = "a bool tensor (convert with x.to(DType::int64))";

const std::vector<double> kOrdinary = {-100, -10, -1, 0, 1, 10, 100, kInf, -kInf, kNan};
const std::vector<double> kNotNegative = {0, 1e-30, 1, 4, 1e30, kInf, kNan, -1};

const RegisterOpCases registered([] {
  return OpCases{
      {"exp",
       joined(samples(function<exp>, libm<std::exp>, {}, {-80, -1, 0, 1, 80, kInf, -kInf, kNan}),
              {large(function<exp>, libm<std::exp>)}),
       {}},
      {"log", samples(function<log>, libm<std::log>, {0.25, 3}, kNotNegative), {}},
      {"sqrt", samples(function<sqrt>, libm<std::sqrt>, {0.25, 3}, kNotNegative), {}},
      {"rsqrt",
       samples(
           function<rsqrt>, [](double x) { return 1 / std::sqrt(x); }, {0.25, 3}, kNotNegative),
       {}},
      {"sin", samples(function<sin>, libm<std::sin>, {-4, 4}, {-100, -1, 0, 1, 100, kInf, kNan}), {}},
      {"cos", samples(function<cos>, libm<std::cos>, {-4, 4}, {-100, -1, 0, 1, 100, kInf, kNan}), {}},
      {"tanh", joined(samples(function<tanh>, libm<std::tanh>, {}, kOrdinary), {large(function<tanh>, libm<std::tanh>)}), {}},
      {"sigmoid", samples(function<sigmoid>, sigmoid_of, {}, kOrdinary), {}},
      {"abs",
       joined(samples(function<abs>, absolute, {-2, 2, {0}}, kOrdinary), {of_integers(function<abs>, absolute)}),
       {refused("abs", abs, DType::boolean, kBool)}},
      {"relu",
       joined(samples(function<relu>, rectified, {-2, 2, {0}}, kOrdinary), {of_integers(function<relu>, rectified)}),
       {refused("relu", relu, DType::boolean, kBool)}},
      {"clamp",
       joined(samples([](const Tensor& x) { return clamp(x, -0.5, 1); },
                      [](double x) { return x < -0.5 ? -0.5
                                            : x > 1  ? 1
                                                     : x; }, {-2, 2, {-0.5, 1}}, kOrdinary),
              {of_integers([](const Tensor& x) { return x.clamp(0, 3); }, [](double x) { return std::clamp(x, 0.0, 3.0); }),
               {"only below",
                {{.shape = {3, 4}, .avoid = {0}}},
                [](const std::vector<Tensor>& in) { return clamp(in[0], 0); },
                [](const std::vector<Values>& in) { return naive::map(in[0], rectified); }},
               {"only above",
                {{.shape = {3, 4}, .avoid = {1}}},
                [](const std::vector<Tensor>& in) { return clamp(in[0], None, 1); },
                [](const std::vector<Values>& in) { return naive::map(in[0], [](double x) { return std::min(x, 1.0); }); }},
               {"only above, a fraction for integers",
                {{.shape = 5, .dtype = DType::int64, .values = {-3, -1, 0, 1, 7}}},
                [](const std::vector<Tensor>& in) { return in[0].clamp(None, 0.5); },
                [](const std::vector<Values>& in) { return naive::map(in[0], [](double x) { return std::min(x, 0.5); }); },
                false}}),
       {{"no bound", [] { clamp(zeros({2}), {}); }, "clamp: needs a least or a largest value"}}},
      {"gelu",
       samples(gelu_none, gelu_erf, {}, {-5, -1, 0, 1, 10, kInf, kNan}),
       {refused("gelu", gelu_none, DType::int64, "")}},
      {"gelu",
       samples(gelu_approximate, gelu_tanh, {}, {-5, -1, 0, 1, 10, kInf, kNan}),
       {refused("gelu", gelu_approximate, DType::int64, "")}},
      {"silu",
       samples(function<silu>, [](double x) { return x * sigmoid_of(x); }, {}, {-50, -1, 0, 1, 50, kInf, kNan}),
       {refused("silu", silu, DType::int64, "")}},
  };
});

}  // namespace
}  // namespace onestep
