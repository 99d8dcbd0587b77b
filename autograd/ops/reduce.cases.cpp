#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "autograd/ops/naive.h"

namespace onestep {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Slice = std::vector<double>;

double sum_of(const Slice& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
double mean_of(const Slice& x) { return sum_of(x) / static_cast<double>(x.size()); }
auto var_of(int64_t correction) {
  return [correction](const Slice& x) {
    double squares = 0;
    for (double v : x) squares += (v - mean_of(x)) * (v - mean_of(x));
    return squares / std::max(0.0, static_cast<double>(x.size()) - static_cast<double>(correction));
  };
}
size_t place_of_max(const Slice& x) {
  size_t best = 0;
  for (size_t i = 1; i < x.size() && !std::isnan(x[best]); ++i)
    if (x[i] > x[best] || std::isnan(x[i])) best = i;
  return best;
}
double max_of(const Slice& x) { return x[place_of_max(x)]; }
double argmax_of(const Slice& x) { return static_cast<double>(place_of_max(x)); }

/// Distinct values at least 1/8 apart: no tie, and no finite difference makes one.
InputSpec distinct(const Shape& shape) {
  InputSpec spec{shape};
  const int64_t n = shape.numel();
  for (int64_t i = 0; i < n; ++i) spec.values.push_back(static_cast<double>(i * 7919 % n) / 8 - 2);
  return spec;
}
/// Mostly positive, so that a long float32 sum does not cancel.
InputSpec any(const Shape& shape) { return {shape, -1, 3}; }
InputSpec integers(const Shape& shape) { return {.shape = shape, .low = -9, .high = 9, .dtype = DType::int64}; }
InputSpec values(const Shape& shape, std::vector<double> given) { return {.shape = shape, .values = std::move(given)}; }

template <class Op, class F>
OpSample reduced(const std::string& label, InputSpec x, const Shape& dims, bool keepdim, Op op, F f,
                 bool differentiable = true) {
  return {label,
          {std::move(x)},
          [=](const std::vector<Tensor>& in) { return op(in[0], dims, keepdim); },
          [=](const std::vector<Values>& in) { return naive::reduce(in[0], dims, keepdim, f); },
          differentiable};
}

/// `op(x, dims, keepdim)` against `f` over every kind of dims.
template <class Op, class F>
std::vector<OpSample> over_dims(InputSpec (*spec)(const Shape&), Op op, F f) {
  return {reduced("all", spec({2, 3, 4}), {}, false, op, f),
          reduced("all kept", spec({2, 3, 4}), {}, true, op, f),
          reduced("first", spec({2, 3, 4}), 0, false, op, f),
          reduced("middle kept", spec({2, 3, 4}), 1, true, op, f),
          reduced("last", spec({2, 3, 4}), -1, false, op, f),
          reduced("first and last", spec({2, 3, 4}), {0, -1}, false, op, f),
          reduced("last and middle kept", spec({2, 3, 4}), {2, 1}, true, op, f),
          reduced("number", spec({}), {}, false, op, f),
          reduced("no outputs", spec({0, 3}), 1, false, op, f),
          reduced("size 1", spec({3, 1}), 1, false, op, f),
          reduced("rank 6", spec({2, 3, 1, 2, 2, 3}), {0, 3, 5}, false, op, f),
          reduced("long rows", spec({2, 700}), 1, false, op, f),
          reduced("long columns", spec({700, 3}), 0, false, op, f)};
}

/// `op(x, dim)` against `f` over one dim; dims {} is the form without a dim.
template <class Op, class F>
std::vector<OpSample> over_dim(InputSpec (*spec)(const Shape&), Op op, F f, bool differentiable) {
  std::vector<OpSample> all;
  struct Case {
    const char* label;
    Shape shape;
    int64_t dim;
    bool keepdim;
  };
  const Case cases[] = {{"first", {4, 3}, 0, false},       {"middle kept", {2, 3, 4}, 1, true},
                        {"last", {2, 3, 4}, -1, false},    {"no outputs", {0, 3}, 1, true},
                        {"long rows", {2, 700}, 1, false}, {"rank 6", {2, 1, 3, 2, 1, 2}, 2, false}};
  for (const Case& c : cases)
    all.push_back(reduced(
        c.label, spec(c.shape), c.dim, c.keepdim,
        [op](const Tensor& x, const Shape& dims, bool keepdim) { return op(x, dims[0], keepdim); }, f, differentiable));
  all.push_back({"number",
                 {{{}}},
                 [op](const std::vector<Tensor>& in) { return op(in[0], 0, false); },
                 [f](const std::vector<Values>& in) { return naive::reduce(in[0], {}, false, f); },
                 differentiable});
  return all;
}

std::vector<OpSample> joined(std::vector<OpSample> all, std::vector<OpSample> more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

OpSample summed_up(const char* label, InputSpec x, int dim, bool differentiable = true) {
  return {label,
          {std::move(x)},
          [dim](const std::vector<Tensor>& in) { return cumsum(in[0], dim); },
          [dim](const std::vector<Values>& in) {
            Values y = in[0];
            if (y.shape.empty()) return y;
            const auto d = static_cast<size_t>(dim < 0 ? dim + y.shape.rank() : dim);
            for (int64_t i = 0; i < y.shape.numel(); ++i) {
              naive::Place before = naive::place_of(y.shape, i);
              if (--before[d] >= 0) y[i] += y[naive::number_of(y.shape, before)];
            }
            return y;
          },
          differentiable};
}

constexpr auto kSum = [](const Tensor& x, const Shape& dims, bool keepdim) { return sum(x, dims, keepdim); };
constexpr auto kMean = [](const Tensor& x, const Shape& dims, bool keepdim) { return mean(x, dims, keepdim); };
constexpr auto kVar = [](const Tensor& x, const Shape& dims, bool keepdim) { return var(x, dims, 0, keepdim); };
constexpr auto kUnbiased = [](const Tensor& x, const Shape& dims, bool keepdim) { return var(x, dims, 1, keepdim); };
constexpr auto kAmax = [](const Tensor& x, const Shape& dims, bool keepdim) { return amax(x, dims, keepdim); };
constexpr auto kMaxOfAll = [](const Tensor& x, const Shape&, bool) { return max(x); };
constexpr auto kMaxValues = [](const Tensor& x, int64_t dim, bool keepdim) { return max(x, dim, keepdim).values; };
constexpr auto kMaxIndices = [](const Tensor& x, int64_t dim, bool keepdim) { return max(x, dim, keepdim).indices; };
constexpr auto kArgmax = [](const Tensor& x, int64_t dim, bool keepdim) { return argmax(x, dim, keepdim); };
constexpr auto kArgmaxOfAll = [](const Tensor& x, const Shape&, bool) { return argmax(x); };

OpError out_of_range(const std::string& op, void (*call)(const Tensor&)) {
  return {"dim out of range", [call] { call(zeros({2, 3})); }, op + ": dim out of range: 2 (expected -2 to 1)"};
}

const InputSpec kTies = values({2, 4}, {1, 3, 3, 2, 5, 5, 5, 0});
const InputSpec kNans = values({3, 3}, {1, kNan, 3, kInf, 2, kInf, -kInf, -kInf, kNan});

OpSample with_bools() {
  return reduced("bool", {.shape = {3, 4}, .low = 0, .high = 2, .dtype = DType::boolean}, 1, false, kSum, sum_of, false);
}

const RegisterOpCases registered([] {
  return OpCases{
      {"sum",
       joined(over_dims(any, kSum, sum_of),
              {reduced("over nothing", any({2, 0}), 1, false, kSum, sum_of),
               reduced("int64", integers({3, 4}), 0, false, kSum, sum_of, false), with_bools(),
               reduced("large", values({70000}, std::vector<double>(70000, 0.125)), {}, false, kSum, sum_of),
               reduced("special values", kNans, 0, false, kSum, sum_of, false)}),
       {out_of_range("sum", [](const Tensor& x) { sum(x, 2); }),
        {"repeated dim",
         [] {
           sum(zeros({2, 3}), {0, -2});
         },
         "sum: dim -2 appears twice in [0, -2]"}}},
      {"mean",
       joined(over_dims(any, kMean, mean_of), {reduced("over nothing", any({2, 0}), 1, false, kMean, mean_of, false)}),
       {{"int64", [] { mean(zeros({2}, DType::int64)); },
         "mean: needs a floating dtype: got int64 (convert with x.to(DType::float32))"},
        out_of_range("mean", [](const Tensor& x) { mean(x, 2); })}},
      {"var",
       joined(over_dims(any, kVar, var_of(0)), {reduced("unbiased", any({3, 5}), 1, false, kUnbiased, var_of(1)),
                                                reduced("unbiased of all", any({3, 5}), {}, false, kUnbiased, var_of(1)),
                                                reduced("of one element", any({3, 1}), 1, true, kUnbiased, var_of(1), false),
                                                reduced("over nothing", any({2, 0}), 1, false, kVar, var_of(0), false)}),
       {{"bool", [] { var(zeros({2}, DType::boolean)); },
         "var: needs a floating dtype: got bool (convert with x.to(DType::float32))"},
        out_of_range("var", [](const Tensor& x) { var(x, 2); })}},
      {"amax",
       joined(over_dims(distinct, kAmax, max_of), {reduced("ties", kTies, 1, false, kAmax, max_of, false),
                                                   reduced("special values", kNans, 1, false, kAmax, max_of, false),
                                                   reduced("int64", integers({3, 4}), 0, true, kAmax, max_of, false)}),
       {{"over nothing",
         [] {
           amax(zeros({2, 0}), 1);
         },
         "amax: no elements to choose from in dims [1] of shape [2, 0]"}}},
      {"max",
       joined(over_dim(distinct, kMaxValues, max_of, true),
              {reduced("of all", distinct({3, 4}), {}, false, kMaxOfAll, max_of),
               reduced("of all int64", integers({3, 4}), {}, false, kMaxOfAll, max_of, false)}),
       {{"nothing",
         [] {
           max(zeros({2, 0}));
         },
         "max: no elements to choose from in shape [2, 0]"},
        {"over nothing",
         [] {
           max(zeros({2, 0}), 1);
         },
         "max: no elements to choose from in dims [1] of shape [2, 0]"},
        out_of_range("max", [](const Tensor& x) { max(x, 2); })}},
      {"max", over_dim(distinct, kMaxIndices, argmax_of, false), {}},
      {"argmax",
       joined(over_dim(any, kArgmax, argmax_of, false),
              {reduced("of all", any({3, 4}), {}, false, kArgmaxOfAll, argmax_of, false),
               reduced("ties", kTies, {}, false, kArgmaxOfAll, argmax_of, false),
               reduced("special values", kNans, {}, false, kArgmaxOfAll, argmax_of, false),
               reduced("int64", integers({30}), {}, false, kArgmaxOfAll, argmax_of, false)}),
       {{"nothing", [] { argmax(zeros({0})); }, "argmax: no elements to choose from in dims [0] of shape [0]"},
        out_of_range("argmax", [](const Tensor& x) { argmax(x, 2); })}},
      {"cumsum",
       {summed_up("vector", any({7}), 0), summed_up("first", any({4, 3}), 0), summed_up("middle", any({2, 3, 4}), 1),
        summed_up("last", any({2, 3, 4}), -1), summed_up("number", any({}), 0), summed_up("empty", any({0, 3}), 0),
        summed_up("no outputs", any({3, 0}), 0), summed_up("rank 6", any({2, 1, 3, 1, 2, 2}), 2),
        summed_up("int64", integers({2, 5}), 1, false), summed_up("many lines", any({3, 500}), 0)},
       {out_of_range("cumsum", [](const Tensor& x) { cumsum(x, 2); })}},
  };
});

}  // namespace
}  // namespace onestep
