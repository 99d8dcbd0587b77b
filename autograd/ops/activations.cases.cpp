#include <algorithm>
#include <cmath>

#include "autograd/ops/pointwise_cases.h"
#include "autograd/ops_pointwise.h"

namespace onestep {
namespace {

using namespace pointwise;

const std::vector<double> kSpecial = {-kInf, -100, -20, -3, -1, -0.0, 0, 1, 3, 6, 19.5, 20.5, 100, kInf, kNan};
const Domain kNotZero = {-2, 2, {0}}, kWide = {-5, 8, {-3, -1, 0, 1, 3, 6}};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double soft(double x, double beta, double threshold) {
  return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
}
double leaky(double x) { return x > 0 ? x : 0.01 * x; }
double exponential(double x, double alpha, double scale, double inner) {
  return x > 0 ? scale * x : scale * alpha * std::expm1(x * inner);
}
double elu_of(double x) { return exponential(x, 1, 1, 1); }
double selu_of(double x) { return exponential(x, 1.6732632423543772, 1.0507009873554805, 1); }
double celu_of(double x) { return exponential(x, 1, 1, 1); }
double between(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
double hard_tanh(double x) { return between(x, -1, 1); }
double six(double x) { return between(x, 0, 6); }
double hard_sigmoid(double x) { return between(x + 3, 0, 6) / 6; }
double hard_swish(double x) { return x * between(x + 3, 0, 6) / 6; }
double mish_of(double x) { return x * std::tanh(std::log1p(std::exp(x))); }
double log_sigmoid(double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x))); }
double soft_sign(double x) { return x / (1 + std::abs(x)); }
double shrunk(double x) { return x - std::tanh(x); }
double hard_shrunk(double x) { return std::abs(x) <= 0.5 ? 0 : x; }
double soft_shrunk(double x) { return std::abs(x) <= 0.5 ? x * 0 : x > 0 ? x - 0.5 : x + 0.5; }
double thresholded(double x) { return x <= 2 ? -7 : x; }

template <class Op>
OpCase activation(const char* name, Op op, double (*f)(double), const Domain& domain,
                  const std::vector<double>& special = kSpecial) {
  return {name,
          samples(op, f, domain, special),
          {error(
              "int64", [op] { op(zeros({2}, DType::int64)); }, name + std::string(": "), is_a<DTypeError>)}};
}
/// One that takes integers, too.
template <class Op>
OpCase of_numbers(const char* name, Op op, double (*f)(double), const Domain& domain, bool rounds_once = true) {
  OpCase c = {name, samples(op, f, domain, kSpecial), {}};
  if (!rounds_once) c.samples = without(&OpSample::rounds_once, c.samples);
  c.samples.push_back(one(
      "int64", values({-7, -1, 0, 1, 3}, DType::int64), op,
      [f](double x) { return static_cast<double>(static_cast<float>(f(x))); }, false));
  return c;
}
template <class Op>
OpCase written(const char* name, Op op, double (*f)(double), const Domain& domain) {
  return {name, in_place(op, f, domain), {}};
}

OpSample with_slopes(const char* label, const Shape& x, const Shape& weight) {
  return {label,
          {{x, -2, 2, {0}}, {weight, 0.1, 1}},
          [](const std::vector<Tensor>& in) { return prelu(in[0], in[1]); },
          [](const std::vector<Values>& in) {
            Values y = in[0];
            for (int64_t i = 0; i < y.shape.numel(); ++i) {
              const int64_t place = y.shape.rank() > 1 && in[1].data.size() > 1 ? naive::place_of(y.shape, i)[1] : 0;
              if (!(y[i] > 0)) y[i] *= in[1][place];
            }
            return y;
          }};
}

OpSample gated(const char* label, const Shape& shape, int64_t dim) {
  return {label,
          {{shape}},
          [dim](const std::vector<Tensor>& in) { return glu(in[0], dim); },
          [dim](const std::vector<Values>& in) {
            Shape half = in[0].shape;
            const auto d = static_cast<size_t>(dim < 0 ? dim + half.rank() : dim);
            const int64_t size = half[static_cast<int>(d)] / 2;
            half[static_cast<int>(d)] = size;
            Values y(half);
            for (int64_t i = 0; i < half.numel(); ++i) {
              naive::Place place = naive::place_of(half, i);
              const double a = in[0][naive::number_of(in[0].shape, place)];
              place[d] += size;
              y[i] = a * logistic(in[0][naive::number_of(in[0].shape, place)]);
            }
            return y;
          }};
}

const RegisterOpCases registered([] {
  const auto elu_by = [](double alpha) { return [alpha](const Tensor& x) { return elu(x, alpha); }; };
  const auto celu_by = [](double alpha) { return [alpha](const Tensor& x) { return celu(x, alpha); }; };
  const auto sharp = [](const Tensor& x) { return softplus(x, 2.5, 3); };
  const auto cut = [](const Tensor& x) { return threshold(x, 2, -7); };
  OpCases all = {
      activation(
          "softplus", [](const Tensor& x) { return softplus(x); }, [](double x) { return soft(x, 1, 20); }, {}),
      activation("softplus", sharp, [](double x) { return soft(x, 2.5, 3); }, {-2, 2, {1.2}}),
      activation(
          "leaky_relu", [](const Tensor& x) { return leaky_relu(x); }, leaky, kNotZero),
      written(
          "leaky_relu_", [](const Tensor& x) { return leaky_relu_(x); }, leaky, kNotZero),
      activation("elu", elu_by(1), elu_of, kNotZero),
      activation(
          "elu", elu_by(0.5), [](double x) { return exponential(x, 0.5, 1, 1); }, kNotZero),
      written(
          "elu_", [](const Tensor& x) { return elu_(x); }, elu_of, kNotZero),
      activation("selu", function<selu>, selu_of, kNotZero),
      written("selu_", function<selu_>, selu_of, kNotZero),
      activation("celu", celu_by(1), celu_of, kNotZero),
      activation(
          "celu", celu_by(2), [](double x) { return exponential(x, 2, 1, 0.5); }, kNotZero),
      written(
          "celu_", [](const Tensor& x) { return celu_(x); }, celu_of, kNotZero),
      of_numbers(
          "hardtanh", [](const Tensor& x) { return hardtanh(x); }, hard_tanh, kWide),
      of_numbers(
          "hardtanh", [](const Tensor& x) { return hardtanh(x, -3, 6); }, [](double x) { return between(x, -3, 6); }, kWide),
      written(
          "hardtanh_", [](const Tensor& x) { return hardtanh_(x); }, hard_tanh, kWide),
      of_numbers("relu6", function<relu6>, six, kWide),
      activation("hardsigmoid", function<hardsigmoid>, hard_sigmoid, kWide),
      activation("hardswish", function<hardswish>, hard_swish, kWide),
      activation("mish", function<mish>, mish_of, {}),
      activation("hardshrink", [](const Tensor& x) { return hardshrink(x); }, hard_shrunk, {-2, 2, {-0.5, 0.5}}),
      activation("softshrink", [](const Tensor& x) { return softshrink(x); }, soft_shrunk, {-2, 2, {-0.5, 0.5}}),
      activation("logsigmoid", function<logsigmoid>, log_sigmoid, {}),
      of_numbers("softsign", function<softsign>, soft_sign, kNotZero, /*rounds_once=*/false),
      of_numbers("tanhshrink", function<tanhshrink>, shrunk, {}),
      of_numbers("threshold", cut, thresholded, {0, 4, {2}}),
      written("threshold_", [](const Tensor& x) { return threshold_(x, 2, -7); }, thresholded, {0, 4, {2}}),
      {"prelu",
       {with_slopes("one slope", {3, 4}, {1}), with_slopes("a rank-0 slope", {3, 4}, {}),
        with_slopes("channels", {2, 3, 4}, {3}), with_slopes("vector", {5}, {1}), with_slopes("number", {}, {1}),
        with_slopes("empty", {0, 3}, {3})},
       {error(
            "channels",
            [] {
              prelu(zeros({2, 3}), zeros({2}));
            },
            "prelu: weight [2] does not fit an input of shape [2, 3] (needs 1 or 3 numbers)"),
        error(
            "dtypes",
            [] {
              prelu(zeros({2, 3}), zeros({3}, DType::float64));
            },
            "prelu: ", is_a<DTypeError>),
        error(
            "int64", [] { prelu(zeros({2}, DType::int64), zeros({1})); }, "prelu: ", is_a<DTypeError>)}},
      {"glu",
       {gated("last", {3, 4}, -1), gated("first", {4, 3}, 0), gated("middle", {2, 6, 3}, 1), gated("empty", {0, 4}, 1),
        gated("vector", {8}, 0)},
       {error(
            "odd",
            [] {
              glu(zeros({2, 3}));
            },
            "glu: needs an even size: dim -1 of shape [2, 3]"),
        error(
            "number", [] { glu(zeros({})); }, "glu: a rank-0 tensor has no halves"),
        error(
            "int64", [] { glu(zeros({2}, DType::int64)); }, "glu: ", is_a<DTypeError>)}},
  };
  for (OpCase& c : all) {
    if (c.op == "celu")
      c.errors.push_back(error(
          "alpha 0", [] { celu(zeros({2}), 0); }, "celu: alpha must not be 0"));
    if (c.op == "softshrink")
      c.errors.push_back(error(
          "lambd", [] { softshrink(zeros({2}), -1); }, "softshrink: lambd must be at least 0: got -1"));
    if (c.op == "threshold")
      c.errors.push_back(error(
          "bool", [] { threshold(zeros({2}, DType::boolean), 0, 1); },
          "threshold: a bool tensor (convert with x.to(DType::int64))"));
    if (c.op == "hardtanh")
      c.errors.push_back(error(
          "bounds", [] { hardtanh(zeros({2}), 1, -1); }, "hardtanh: min_value 1 is above max_value -1"));
  }
  return all;
});

}  // namespace
}  // namespace onestep
