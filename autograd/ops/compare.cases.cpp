#include <algorithm>
#include <cmath>

#include "autograd/ops/reduce_cases.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using Binary = Tensor (*)(const Tensor&, const Tensor&);
using WithNumber = Tensor (*)(const Tensor&, Scalar);

template <class F>
OpSample pair(const char* label, InputSpec a, InputSpec b, Binary op, F f) {
  return {label,
          {std::move(a), std::move(b)},
          [op](const std::vector<Tensor>& in) { return op(in[0], in[1]); },
          [f](const std::vector<Values>& in) { return naive::zip(in[0], in[1], f); },
          false};
}

InputSpec integers(const Shape& shape) { return {.shape = shape, .low = -2, .high = 3, .dtype = DType::int64}; }

template <class F>
std::vector<OpSample> pairs(Binary op, F f) {
  return {pair("floats", values({2, 3}, {1, 0.5, -1, kInf, kNan, 0}), values({2, 3}, {1, 1, -2, kInf, kNan, -0.0}), op, f),
          pair("int64", integers({4, 5}), integers({5}), op, f),
          pair("bool", truths({3, 1}), truths({1, 4}), op, f),
          pair("int64 and float", integers({3}), values({2, 1}, {0.5, 1}), op, f),
          pair("numbers", {{}}, {{}}, op, f),
          pair("empty", {{0, 3}}, {{3}}, op, f),
          pair("long rows", integers({2, 300}), integers({2, 300}), op, f),
          pair("rank 6", integers({2, 1, 3, 1, 2, 2}), integers({1, 2, 1, 2, 2, 1}), op, f)};
}

template <class F>
OpCase comparison(const char* name, Binary op, WithNumber number_op, F f) {
  std::vector<OpSample> samples = pairs(op, f);
  const auto compared = [&](const char* label, InputSpec x, Scalar number) {
    samples.push_back(
        {label,
         {std::move(x)},
         [=](const std::vector<Tensor>& in) { return number_op(in[0], number); },
         [=](const std::vector<Values>& in) { return naive::map(in[0], [=](double v) { return f(v, number.value); }); },
         false});
  };
  compared("a number", values({5}, {-1, 0.5, 0.25, kNan, kInf}), 0.5);
  compared("int64 and a fraction", integers({6}), 0.5);
  compared("bool and a number", truths({6}), 1);
  return {name, samples, {{"shapes", [op] { op(zeros({2, 3}), zeros({2, 4})); }, name + std::string(": "), is_a<ShapeError>}}};
}

template <class F>
OpSample one(const char* label, InputSpec x, Tensor (*op)(const Tensor&), F f) {
  return {label,
          {std::move(x)},
          [op](const std::vector<Tensor>& in) { return op(in[0]); },
          [f](const std::vector<Values>& in) { return naive::map(in[0], f); },
          false};
}

OpSample reduced(const char* label, InputSpec x, Tensor (*op)(const Tensor&), bool stop_at, bool otherwise) {
  return {label,
          {std::move(x)},
          [op](const std::vector<Tensor>& in) { return op(in[0]); },
          [=](const std::vector<Values>& in) {
            Values y((Shape()));
            y[0] = otherwise;
            for (double v : in[0].data)
              if ((v != 0) == stop_at) y[0] = stop_at;
            return y;
          },
          false};
}

/// A function whose result is a plain bool.
OpSample decided(const char* label, InputSpec a, InputSpec b, bool (*op)(const Tensor&, const Tensor&), bool expected) {
  return {label,
          {std::move(a), std::move(b)},
          [op](const std::vector<Tensor>& in) { return tensor(op(in[0], in[1])); },
          [expected](const std::vector<Values>&) {
            Values y((Shape()));
            y[0] = expected;
            return y;
          },
          false,
          false};
}

bool close(const Tensor& a, const Tensor& b) { return allclose(a, b); }
bool close_with_nan(const Tensor& a, const Tensor& b) { return allclose(a, b, 1e-5, 1e-8, true); }

constexpr auto reduced_by_any = [](const Tensor& x, const Shape& dims, bool keepdim) { return any(x, dims, keepdim); };
constexpr auto reduced_by_all = [](const Tensor& x, const Shape& dims, bool keepdim) { return all(x, dims, keepdim); };

/// any or all over every kind of dims, of floats that are mostly 0 or not, and of bools.
template <class Op>
std::vector<OpSample> over_dims_of(Op op, bool any_true) {
  const auto f = [any_true](const std::vector<double>& slice) {
    const auto count = std::count_if(slice.begin(), slice.end(), [](double v) { return v != 0; });
    return static_cast<double>(any_true ? count > 0 : count == std::ssize(slice));
  };
  const auto sparse = [](const Shape& shape) {
    InputSpec spec{shape};
    for (int64_t i = 0; i < shape.numel(); ++i) spec.values.push_back(i * 7919 % 17 < 2 ? 0.5 : 0);
    return spec;
  };
  const auto dense = [](const Shape& shape) {
    InputSpec spec{shape};
    for (int64_t i = 0; i < shape.numel(); ++i) spec.values.push_back(i * 7919 % 17 < 2 ? 0 : 0.5);
    return spec;
  };
  std::vector<OpSample> all = reductions::over_dims(any_true ? +sparse : +dense, op, f);
  all.push_back(reductions::reduced("bool", truths({4, 3}), 0, false, op, f));
  all.push_back(reductions::reduced("over nothing", {{2, 0}}, 1, false, op, f));
  all.push_back(reductions::reduced("NaN is true", values({1, 2}, {kNan, 0}), 1, false, op, f));
  for (OpSample& sample : all) sample.differentiable = false;
  return all;
}

const RegisterOpCases registered([] {
  return OpCases{
      comparison("eq", eq, eq, [](double a, double b) { return a == b; }),
      comparison("ne", ne, ne, [](double a, double b) { return a != b; }),
      comparison("lt", lt, lt, [](double a, double b) { return a < b; }),
      comparison("le", le, le, [](double a, double b) { return a <= b; }),
      comparison("gt", gt, gt, [](double a, double b) { return a > b; }),
      comparison("ge", ge, ge, [](double a, double b) { return a >= b; }),
      {"logical_and", pairs(logical_and, [](double a, double b) { return a != 0 && b != 0; }), {}},
      {"logical_or", pairs(logical_or, [](double a, double b) { return a != 0 || b != 0; }), {}},
      {"logical_xor", pairs(logical_xor, [](double a, double b) { return (a != 0) != (b != 0); }), {}},
      {"logical_not",
       {one("floats", values({4}, {0, 0.5, -0.0, kNan}), logical_not, [](double x) { return x == 0; }),
        one("int64", integers({2, 5}), logical_not, [](double x) { return x == 0; }),
        one("bool", truths({2, 1, 2, 1, 1, 2}), logical_not, [](double x) { return x == 0; }),
        one("empty", {{2, 0}}, logical_not, [](double x) { return x == 0; })},
       {}},
      {"isnan",
       {one("floats", values({4}, {0, kInf, -kInf, kNan}), isnan, [](double x) { return std::isnan(x); }),
        one("int64", integers({3}), isnan, [](double) { return false; }),
        one("empty", {{2, 0}}, isnan, [](double) { return false; })},
       {}},
      {"isfinite",
       {one("floats", values({2, 2}, {0, kInf, -kInf, kNan}), isfinite, [](double x) { return std::isfinite(x); }),
        one("bool", truths({3}), isfinite, [](double) { return true; }),
        one("empty", {{2, 0}}, isfinite, [](double) { return true; })},
       {}},
      {"any",
       {reduced("none", values({2, 2}, {0, 0, 0, 0}), any, true, false),
        reduced("one", values({2, 2}, {0, 0, 0, 0.25}), any, true, false), reduced("bool", truths({5}), any, true, false),
        reduced("nothing", {{0, 2}}, any, true, false)},
       {}},
      {"all",
       {reduced("all", values({2, 2}, {1, 2, -1, 0.25}), all, false, true),
        reduced("not the last", values({2, 2}, {1, 2, 1, 0}), all, false, true), reduced("bool", truths({5}), all, false, true),
        reduced("nothing", {{0, 2}}, all, false, true)},
       {}},
      {"any", over_dims_of(reduced_by_any, true), {reductions::out_of_range("any", [](const Tensor& x) { any(x, 2); })}},
      {"all", over_dims_of(reduced_by_all, false), {reductions::out_of_range("all", [](const Tensor& x) { all(x, 2); })}},
      {"equal",
       {decided("same", values({3}, {1, 2, 3}), values({3}, {1, 2, 3}), equal, true),
        decided("one differs", values({3}, {1, 2, 3}), values({3}, {1, 2, 4}), equal, false),
        decided("shape", values({1}, {1}), values({1, 1}, {1}), equal, false),
        decided("dtype", values({1}, {1}), values({1}, {1}, DType::int64), equal, false),
        decided("NaN", values({1}, {kNan}), values({1}, {kNan}), equal, false),
        decided("empty", {{0, 2}}, {{0, 2}}, equal, true), decided("empty shapes", {{0, 2}}, {{2, 0}}, equal, false)},
       {}},
      {"allclose",
       {decided("close", values({2}, {1, -2}), values({2}, {1 + 0x1p-18, -2}), close, true),
        decided("far", values({2}, {1, -2}), values({2}, {1 + 0x1p-16, -2}), close, false),
        decided("infinite", values({2}, {kInf, 1}), values({2}, {kInf, 1}), close, true),
        decided("opposite infinities", values({1}, {-kInf}), values({1}, {kInf}), close, false),
        decided("finite and infinite", values({1}, {1}), values({1}, {kInf}), close, false),
        decided("NaN", values({1}, {kNan}), values({1}, {kNan}), close, false),
        decided("NaN as equal", values({1}, {kNan}), values({1}, {kNan}), close_with_nan, true),
        decided("empty", {{0, 2}}, {{0, 2}}, close, true)},
       {{"dtypes", [] { allclose(zeros(2), zeros(2, DType::float64)); }, "allclose: ", is_a<DTypeError>}}},
  };
});

}  // namespace
}  // namespace onestep
