#pragma once
// What the cases of elementwise ops share: an op of one or two operands against a formula in double.
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops/cases.h"
#include "autograd/ops/naive.h"
#include "autograd/ops_shape.h"

namespace onestep::pointwise {

/// The arguments that an op is tried on, away from kinks.
struct Domain {
  double low = -2, high = 2;
  std::vector<double> avoid = {};
};

inline InputSpec integers(const Shape& shape) { return {.shape = shape, .low = -9, .high = 10, .dtype = DType::int64}; }

/// op(x) against f(x).
template <class Op, class F>
OpSample one(const char* label, InputSpec x, Op op, F f, bool differentiable = true) {
  return {label,
          {std::move(x)},
          [op](const std::vector<Tensor>& in) { return op(in[0]); },
          [f](const std::vector<Values>& in) { return naive::map(in[0], f); },
          differentiable};
}

/// op(a, b) against f(a, b), broadcast.
template <class Op, class F>
OpSample two(const char* label, InputSpec a, InputSpec b, Op op, F f, bool differentiable = true) {
  return {label,
          {std::move(a), std::move(b)},
          [op](const std::vector<Tensor>& in) { return op(in[0], in[1]); },
          [f](const std::vector<Values>& in) { return naive::zip(in[0], in[1], f); },
          differentiable};
}

/// `op` against `f` on shapes of every kind, and on `special` values without gradients.
template <class Op, class F>
std::vector<OpSample> samples(Op op, F f, const Domain& domain, const std::vector<double>& special) {
  const std::pair<const char*, Shape> shapes[] = {{"matrix", {3, 4}},       {"number", {}},
                                                  {"empty", {2, 0, 3}},     {"long rows", {3, 300}},
                                                  {"one column", {400, 1}}, {"rank 6", {2, 1, 2, 1, 3, 2}}};
  std::vector<OpSample> all;
  for (const auto& [label, shape] : shapes) all.push_back(one(label, {shape, domain.low, domain.high, domain.avoid}, op, f));
  all.push_back(one("special values", values(special), op, f, false));
  return all;
}

/// The same for two operands; the special values are tried in all pairs.
template <class Op, class F>
std::vector<OpSample> pairs(Op op, F f, const Domain& a, const Domain& b, const std::vector<double>& special,
                            bool differentiable = true) {
  const auto spec = [](const Domain& domain, const Shape& shape) {
    return InputSpec{shape, domain.low, domain.high, domain.avoid};
  };
  const std::pair<Shape, Shape> shapes[] = {
      {{3, 4}, {3, 4}}, {{2, 3, 4}, {4}}, {{3, 1}, {1, 4}},     {{3, 4}, {}},
      {{}, {2, 3}},     {{0, 4}, {1, 4}}, {{3, 300}, {3, 300}}, {{2, 1, 2, 1, 3, 2}, {2, 1, 1, 2}}};
  std::vector<OpSample> all;
  for (const auto& [left, right] : shapes) all.push_back(two("floats", spec(a, left), spec(b, right), op, f, differentiable));
  InputSpec rows = values(special), columns = values(special);
  rows.shape = {rows.shape[0], 1};
  if (!special.empty()) all.push_back(two("special values", rows, columns, op, f, false));
  return all;
}

/// In place on a copy of x, laid out in rows and in columns.
template <class Op, class F>
std::vector<OpSample> in_place(Op op, F f, const Domain& domain) {
  const auto on_copy = [op](const Tensor& x) {
    const Tensor y = clone(x);
    op(y);
    return y;
  };
  const auto on_columns = [op](const Tensor& x) {
    const Tensor y = transpose(clone(transpose(x, 0, 1)), 0, 1);
    return op(y);
  };
  return {one("matrix", {{3, 4}, domain.low, domain.high, domain.avoid}, on_copy, f),
          one("columns", {{3, 4}, domain.low, domain.high, domain.avoid}, on_columns, f),
          one("empty", {{0, 4}, domain.low, domain.high, domain.avoid}, on_copy, f)};
}

template <class Op, class F>
std::vector<OpSample> in_place_pairs(Op op, F f, InputSpec (*spec)(const Shape&), bool differentiable = true) {
  const auto on_copy = [op](const Tensor& x, const Tensor& y) { return op(clone(x), y); };
  return {two("same shape", spec({3, 4}), spec({3, 4}), on_copy, f, differentiable),
          two("row", spec({3, 4}), spec({4}), on_copy, f, differentiable),
          two("empty", spec({0, 4}), spec({4}), on_copy, f, differentiable)};
}

template <double (*F)(double)>
constexpr auto libm = [](double x) { return F(x); };
template <double (*F)(double, double)>
constexpr auto libm2 = [](double x, double y) { return F(x, y); };

template <Tensor (*F)(const Tensor&)>
constexpr auto function = [](const Tensor& x) { return F(x); };
template <Tensor (*F)(const Tensor&, const Tensor&)>
constexpr auto function2 = [](const Tensor& x, const Tensor& y) { return F(x, y); };

inline OpError error(const char* label, std::function<void()> call, std::string message, ErrorType type = is_a<Error>) {
  return {label, std::move(call), std::move(message), type};
}

}  // namespace onestep::pointwise
