#include "autograd/operators.h"
#include "autograd/ops/cases.h"
#include "autograd/ops/naive.h"
#include "autograd/ops_index.h"

namespace onestep {
namespace {

/// A created tensor against its row-major values.
template <class Op>
OpSample made(const char* label, const Shape& shape, const std::vector<double>& values, Op op) {
  return {label,
          {},
          [op](const std::vector<Tensor>&) { return op(); },
          [shape, values](const std::vector<Values>&) {
            Values y(shape);
            y.data = values;
            return y;
          },
          false,
          false};
}

/// A tensor of the shape and dtype of another: f(number of the element).
template <class Op>
OpSample alike(const char* label, InputSpec x, Op op, double value) {
  return {label,
          {std::move(x)},
          [op](const std::vector<Tensor>& in) {
            const Tensor y = op(in[0]);
            ONESTEP_CHECK(Error, y.dtype() == in[0].dtype() && y.is_contiguous(), "dtype ", y.dtype(), ", strides ",
                          y.strides());
            return y;
          },
          [value](const std::vector<Values>& in) { return naive::map(in[0], [value](double) { return value; }); },
          false};
}

/// Of another dtype, int64.
template <class Op>
OpSample of_dtype(Op op, double value) {
  return {"another dtype",
          {{{2, 3}}},
          [op](const std::vector<Tensor>& in) {
            const Tensor y = op(in[0]);
            ONESTEP_CHECK(Error, y.dtype() == DType::int64, "dtype ", y.dtype());
            return y;
          },
          [value](const std::vector<Values>& in) { return naive::map(in[0], [value](double) { return value; }); },
          false};
}

template <class Op>
std::vector<OpSample> alikes(Op op, double value) {
  return {alike("matrix", {{2, 3}}, op, value), alike("number", {{}}, op, value), alike("empty", {{0, 2}}, op, value),
          alike("rank 6", {{2, 1, 2, 1, 2, 1}}, op, value), alike("int64", {.shape = {3}, .dtype = DType::int64}, op, value)};
}

/// `op()` with a check of its dtype.
template <class Op>
auto typed(DType dtype, Op op) {
  return [=] {
    const Tensor y = op();
    ONESTEP_CHECK(Error, y.dtype() == dtype, "dtype ", y.dtype());
    return y;
  };
}

constexpr DType f32 = DType::float32, f64 = DType::float64, i64 = DType::int64, boolean = DType::boolean;

const RegisterOpCases registered([] {
  return OpCases{
      {"tensor",
       {made("matrix", {2, 2}, {1, 2, 3, 4.5},
             typed(f32,
                   [] {
                     return tensor({{1, 2}, {3, 4.5}});
                   })),
        made("integers", {3}, {1, 2, 3},
             typed(i64,
                   [] {
                     return tensor({1, 2, 3});
                   })),
        made("bools", {2}, {1, 0},
             typed(boolean,
                   [] {
                     return tensor({true, false});
                   })),
        made("number", {}, {2.5}, typed(f32, [] { return tensor(2.5); })),
        made("integer that double does not hold", {1}, {1},
             typed(i64, [] { return tensor({(int64_t{1} << 53) + 1}) - (int64_t{1} << 53); })),
        made("too large for float32", {1}, {1}, typed(boolean, [] { return gt(tensor({1e300}), 1e38); })),
        made("dtype", {2}, {1, 2},
             typed(f64,
                   [] {
                     return tensor({1, 2}, f64);
                   })),
        made("cube", {1, 2, 1}, {7, 8},
             typed(i64,
                   [] {
                     return tensor({{{7}, {8}}});
                   }))},
       {refused(
            "ragged",
            [] {
              tensor({{1, 2}, {3}});
            },
            "tensor: rows differ in shape: [2] and [1]"),
        refused(
            "NaN in int64", [] { tensor({kNan}, i64); }, "tensor: ", is_a<DTypeError>)}},
      {"from_values",
       {made("float32", {2, 2}, {1, 2, 3, 4},
             typed(f32,
                   [] {
                     return from_values(std::vector<float>{1, 2, 3, 4}, {2, 2});
                   })),
        made("int64", {3}, {1, 2, 3},
             typed(i64,
                   [] {
                     return from_values(std::vector<int64_t>{1, 2, 3}, 3);
                   })),
        made("empty", {0, 3}, {},
             typed(f64,
                   [] {
                     return from_values(std::vector<double>{}, {0, 3});
                   }))},
       {refused(
           "count",
           [] {
             from_values(std::vector<float>{1, 2, 3}, {2, 2});
           },
           "from_values: 3 values for shape [2, 2]")}},
      {"zeros",
       {made("matrix", {2, 2}, {0, 0, 0, 0},
             typed(f32,
                   [] {
                     return zeros({2, 2});
                   })),
        made("dtype", {3}, {0, 0, 0}, typed(boolean, [] { return zeros(3, boolean); })),
        made("empty", {0}, {}, typed(f32, [] { return zeros(0); })),
        made("number", {}, {0}, typed(i64, [] { return zeros({}, i64); }))},
       {refused(
            "negative",
            [] {
              zeros({2, -1});
            },
            "zeros: ", is_a<ShapeError>),
        refused(
            "too large",
            [] {
              zeros({int64_t{1} << 40, int64_t{1} << 40});
            },
            "zeros: too many elements: [1099511627776, 1099511627776]")}},
      {"ones",
       {made("matrix", {2, 2}, {1, 1, 1, 1},
             typed(f32,
                   [] {
                     return ones({2, 2});
                   })),
        made("dtype", {1, 2}, {1, 1},
             typed(i64,
                   [] {
                     return ones({1, 2}, i64);
                   }))},
       {refused(
           "negative", [] { ones(-1); }, "ones: ", is_a<ShapeError>)}},
      {"full",
       {made("float", {2}, {2.5, 2.5}, typed(f32, [] { return full(2, 2.5); })),
        made("integer", {2}, {7, 7}, typed(i64, [] { return full(2, 7); })),
        made("dtype", {1, 1}, {7},
             typed(f64,
                   [] {
                     return full({1, 1}, 7, f64);
                   })),
        made("true", {2}, {1, 1}, typed(boolean, [] { return full(2, true); })),
        made("large integer", {1}, {1},
             [] { return eq(full(1, (int64_t{1} << 62) + 1) - (int64_t{1} << 62), 1).to(DType::int64); }),
        made("bool", {2}, {1, 1}, typed(boolean, [] { return full(2, 3, boolean); })),
        made("infinity", {1}, {1}, typed(boolean, [] { return gt(full(1, kInf), 1e38); }))},
       {refused(
            "negative", [] { full(-1, 2); }, "full: ", is_a<ShapeError>),
        refused(
            "too large", [] { full(1, 1e300); }, "full: ", is_a<DTypeError>),
        refused(
            "NaN", [] { full(1, kNan, DType::int64); }, "full: ", is_a<DTypeError>)}},
      {"zeros_like", {of_dtype([](const Tensor& x) { return zeros_like(x, i64); }, 0)}, {}},
      {"ones_like", {of_dtype([](const Tensor& x) { return ones_like(x, i64); }, 1)}, {}},
      {"full_like", {of_dtype([](const Tensor& x) { return full_like(x, 7, i64); }, 7)}, {}},
      {"empty_like", {of_dtype([](const Tensor& x) { return fill_(empty_like(x, i64), 2); }, 2)}, {}},
      {"zeros_like", alikes([](const Tensor& x) { return zeros_like(x); }, 0), {}},
      {"ones_like", alikes([](const Tensor& x) { return ones_like(x); }, 1), {}},
      {"empty_like", alikes([](const Tensor& x) { return fill_(empty_like(x), 2); }, 2), {}},
      {"full_like", alikes([](const Tensor& x) { return full_like(x, -3); }, -3), {}},
      {"linspace",
       {made("values", {5}, {-1, -0.5, 0, 0.5, 1}, typed(f32, [] { return linspace(-1, 1, 5); })),
        made("downwards", {3}, {3, 2, 1}, typed(DType::float64, [] { return linspace(3, 1, 3, DType::float64); })),
        made("one", {1}, {2}, typed(f32, [] { return linspace(2, 5, 1); })),
        made("both ends are met", {2}, {0.1f, 0.7f},
             [] {
               return index(linspace(0.1, 0.7, 1000), {tensor({0, -1})});
             }),
        made("integers", {4}, {0, 1, 3, 5}, typed(i64, [] { return linspace(0.9, 5.9, 4, i64); })),
        made("nothing", {0}, {}, typed(f32, [] { return linspace(0, 1, 0); }))},
       {{"a negative number", [] { linspace(0, 1, -1); }, "linspace: ", is_a<ShapeError>},
        {"bool", [] { linspace(0, 1, 2, DType::boolean); }, "linspace: has no meaning for bool"}}},
      {"arange",
       {made("end", {4}, {0, 1, 2, 3}, typed(i64, [] { return arange(4); })),
        made("start and end", {3}, {-1, 0, 1}, typed(i64, [] { return arange(-1, 2); })),
        made("step", {3}, {5, 3, 1}, typed(i64, [] { return arange(5, 0, -2); })),
        made("fractions", {4}, {0, 0.5, 1, 1.5}, typed(f32, [] { return arange(0, 2, 0.5); })),
        made("nothing", {0}, {}, typed(i64, [] { return arange(3, 3); })),
        made("nothing downwards", {0}, {}, typed(f32, [] { return arange(1.5, 1.5, -1); })),
        made("integers that double does not hold", {3}, {0, 1, 2},
             [] { return arange(int64_t{1} << 53, (int64_t{1} << 53) + 3) - (int64_t{1} << 53); }),
        made("up to the last integer", {2}, {1, 2}, [] { return arange(INT64_MAX - 2, INT64_MAX) - (INT64_MAX - 3); }),
        made("all integers in few steps", {4}, {-2, -1, 0, 1},
             [] { return to(arange(INT64_MIN, INT64_MAX, int64_t{1} << 62).to(DType::float64) / 0x1p62, DType::int64); })},
       {refused(
            "step", [] { arange(0, 3, 0); }, "arange: start 0, end 3, step 0 (needs finite numbers and a step that is not 0)"),
        refused(
            "direction", [] { arange(0, 5, -1); }, "arange: a step of -1 leads away from the end: start 0, end 5"),
        refused(
            "upwards", [] { arange(3.5, 1); }, "arange: a step of 1 leads away from the end: start 3.5, end 1"),
        refused(
            "too many", [] { arange(INT64_MIN, INT64_MAX); }, "arange: too many elements: 1.84467e+19")}},
      {"eye",
       {made("matrix", {2, 2}, {1, 0, 0, 1}, typed(f32, [] { return eye(2); })),
        made("dtype", {1, 1}, {1}, typed(i64, [] { return eye(1, i64); })), made("empty", {0, 0}, {}, [] { return eye(0); })},
       {refused(
           "negative", [] { eye(-1); }, "eye: ", is_a<ShapeError>)}},
      {"eye",
       {made("wide", {2, 3}, {1, 0, 0, 0, 1, 0}, typed(f32, [] { return eye(2, 3); })),
        made("high", {3, 1}, {1, 0, 0}, typed(i64, [] { return eye(3, 1, i64); }))},
       {refused(
           "negative", [] { eye(2, -1); }, "eye: ", is_a<ShapeError>)}},
      {"arange",
       {made("fractions in float64", {3}, {0.1, 0.30000000000000004, 0.5},
             typed(DType::float64, [] { return arange(0.1, 0.6, 0.2, DType::float64); })),
        made("integers in float32", {3}, {1, 2, 3}, typed(f32, [] { return arange(1, 4, 1, f32); })),
        made("fractions in int64", {3}, {0, 1, 2}, typed(i64, [] { return arange(0.5, 3.7, 1.5, i64); }))},
       {}},
      {"logspace",
       {made("powers of ten", {3}, {0.1, 1, 10}, typed(DType::float64, [] { return logspace(-1, 1, 3, 10, DType::float64); })),
        made("powers of two", {4}, {1, 2, 4, 8}, typed(f32, [] { return logspace(0, 3, 4, 2); })),
        made("integers", {3}, {1, 316, 100000}, typed(i64, [] { return logspace(0.9, 5.9, 3, 10, i64); })),
        made("nothing", {0}, {}, typed(f32, [] { return logspace(0, 1, 0); }))},
       {refused(
           "bool", [] { logspace(0, 1, 2, 10, DType::boolean); }, "logspace: has no meaning for bool")}},
      {"tril_indices",
       {made("square", {2, 3}, {0, 1, 1, 0, 0, 1}, typed(i64, [] { return tril_indices(2, 2); })),
        made("offset", {2, 3}, {1, 2, 2, 0, 0, 1}, typed(i64, [] { return tril_indices(3, 3, -1); })),
        made("nothing", {2, 0}, {}, typed(i64, [] { return tril_indices(0, 3); }))},
       {refused(
           "negative", [] { tril_indices(2, -1); }, "tril_indices: ", is_a<ShapeError>)}},
      {"triu_indices",
       {made("wide", {2, 5}, {0, 0, 0, 1, 1, 0, 1, 2, 1, 2}, typed(i64, [] { return triu_indices(2, 3); })),
        made("offset", {2, 1}, {0, 2}, typed(i64, [] { return triu_indices(2, 3, 2); })),
        made("no columns", {2, 0}, {}, typed(i64, [] { return triu_indices(3, 0); }))},
       {}},
  };
});

}  // namespace
}  // namespace onestep
