#pragma once
// What the cases of reductions share: an op over every kind of dims against f(all values of a slice).
#include <string>
#include <utility>
#include <vector>

#include "autograd/creation.h"
#include "autograd/ops/cases.h"
#include "autograd/ops/naive.h"

namespace onestep::reductions {

using Row = std::vector<double>;

/// Distinct values at least 1/8 apart: no tie, and no finite difference makes one.
inline InputSpec distinct(const Shape& shape) {
  InputSpec spec{shape};
  const int64_t n = shape.numel();
  for (int64_t i = 0; i < n; ++i) spec.values.push_back(static_cast<double>(i * 7919 % n) / 8 - 2);
  return spec;
}
/// Mostly positive, so that a long float32 sum does not cancel.
inline InputSpec drawn(const Shape& shape) { return {shape, -1, 3}; }
inline InputSpec integers(const Shape& shape) { return {.shape = shape, .low = -9, .high = 9, .dtype = DType::int64}; }

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

inline OpError out_of_range(const std::string& op, void (*call)(const Tensor&)) {
  return {"dim out of range", [call] { call(zeros({2, 3})); }, op + ": ", is_a<IndexError>};
}

inline const InputSpec kTies = values({2, 4}, {1, 3, 3, 2, 5, 5, 5, 0});
inline const InputSpec kNans = values({3, 3}, {1, kNan, 3, kInf, 2, kInf, -kInf, -kInf, kNan});

}  // namespace onestep::reductions
