#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops/reduce_cases.h"
#include "autograd/ops_order.h"

namespace onestep {
namespace {

using namespace reductions;

/// Where the elements of a row go: ascending or descending, NaN above all, equal ones in their order.
Row order_of(const Row& x, bool descending) {
  Row order(x.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](double i) { return x[static_cast<size_t>(i)]; };
  const auto below = [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
  std::stable_sort(order.begin(), order.end(),
                   [&](double a, double b) { return descending ? below(at(b), at(a)) : below(at(a), at(b)); });
  return order;
}

Row values_at(const Row& x, const Row& places) {
  Row values;
  for (const double i : places) values.push_back(x[static_cast<size_t>(i)]);
  return values;
}

/// What an op picks of a row, as places.
using Pick = std::function<Row(const Row&)>;
using Op = std::function<ValuesIndices(const Tensor& x, int64_t dim)>;

OpSample picked(const std::string& label, InputSpec x, int dim, const Op& op, const Pick& pick, bool values,
                bool keepdim = true) {
  return {label,
          {std::move(x)},
          [=](const std::vector<Tensor>& in) {
            const ValuesIndices y = op(in[0], dim);
            return values ? y.values : y.indices;
          },
          [=](const std::vector<Values>& in) {
            Values y = naive::along(in[0], dim, [=](const Row& row) { return values ? values_at(row, pick(row)) : pick(row); });
            if (!keepdim && !y.shape.empty()) y.shape.erase(dim < 0 ? dim + y.shape.rank() : dim);
            return y;
          },
          values};
}

enum class Of { values, indices, both };

/// Rows of 4 along every dim; where they have ties or NaN, values without gradient.
std::vector<OpSample> rows_of_four(const Op& op, const Pick& pick, bool keepdim = true, Of part = Of::both) {
  std::vector<OpSample> all;
  for (const bool values : {true, false}) {
    if (part == (values ? Of::indices : Of::values)) continue;
    const auto add = [&](const char* label, InputSpec x, int dim, bool differentiable = true) {
      all.push_back(picked(label, std::move(x), dim, op, pick, values, keepdim));
      all.back().differentiable = values && differentiable;
    };
    add("vector", distinct({4}), 0);
    add("last", distinct({3, 4}), -1);
    add("first", distinct({4, 3}), 0);
    add("middle", distinct({2, 4, 3}), 1);
    add("rank 6", distinct({2, 1, 4, 1, 2, 2}), 2);
    add("no rows", {{0, 4}}, 1);
    add("ties", onestep::values({2, 4}, {1, 3, 3, 1, 5, 5, 5, 0}), 1, false);
    add("special values", onestep::values({3, 4}, {1, kNan, 3, kNan, kInf, -0.0, 0, kInf, kNan, -kInf, -kInf, 2}), 1, false);
    add("int64", {.shape = {3, 4}, .dtype = DType::int64, .values = {3, -1, 2, 2, -0x1p30, 0x1p30, 0, 1, 5, 5, -5, -5}}, 1,
        false);
    add("bool", {.shape = 4, .dtype = DType::boolean, .values = {1, 0, 1, 0}}, 0, false);
  }
  return all;
}

OpError out_of_range(const char* op, std::function<void()> call, const std::string& message, ErrorType type = is_a<Error>) {
  return {"out of range", std::move(call), std::string(op) + ": " + message, type};
}

Row first_of(Row order, size_t count) {
  order.resize(count);
  return order;
}

std::vector<OpSample> sorted(bool descending) {
  const Op op = [=](const Tensor& x, int64_t dim) { return sort(x, dim, descending); };
  const Pick pick = [=](const Row& row) { return order_of(row, descending); };
  std::vector<OpSample> all = rows_of_four(op, pick);
  for (const bool values : {true, false}) {
    all.push_back(picked("many rows", distinct({40, 30}), 1, op, pick, values));
    all.push_back(picked("long rows", distinct({2, 700}), 1, op, pick, values));
    all.push_back(picked("number", {{}}, 0, op, pick, values));
    all.push_back(picked("nothing", {{2, 0}}, 1, op, pick, values));
  }
  return all;
}

std::vector<OpSample> top(int64_t k, bool largest) {
  const Op op = [=](const Tensor& x, int64_t dim) { return topk(x, k, dim, largest); };
  return rows_of_four(op, [=](const Row& row) { return first_of(order_of(row, largest), static_cast<size_t>(k)); });
}

/// The first k of a row with ties and NaN and of one of equal numbers, both long.
std::vector<OpSample> top_of_long_rows() {
  constexpr int n = 2500;
  Row x;
  for (int i = 0; i < 2 * n; ++i) x.push_back(i % 211 == 5 ? kNan : i < n ? i * 7919 % 97 : 1);
  std::vector<OpSample> all;
  for (const int64_t k : {1, 20, 100, 300})
    for (const bool largest : {true, false}) {
      const Op op = [=](const Tensor& t, int64_t dim) { return topk(t, k, dim, largest); };
      const Pick pick = [=](const Row& row) { return first_of(order_of(row, largest), static_cast<size_t>(k)); };
      for (const bool of_values : {true, false}) {
        all.push_back(picked("long rows", values({2, n}, x), 1, op, pick, of_values));
        all.back().differentiable = false;
      }
    }
  return all;
}

/// The place of the median, or of the first NaN.
Row median_of(const Row& row) {
  for (size_t i = 0; i < row.size(); ++i)
    if (std::isnan(row[i])) return {static_cast<double>(i)};
  return {order_of(row, false)[(row.size() - 1) / 2]};
}

double median_value(const Row& row) { return row.empty() ? kNan : values_at(row, median_of(row))[0]; }

const RegisterOpCases sorting([] {
  OpCases all{{"sort",
               sorted(false),
               {out_of_range(
                   "sort",
                   [] {
                     sort(zeros({2, 3}), 2);
                   },
                   "", is_a<IndexError>)}},
              {"sort", sorted(true), {}},
              {"argsort",
               {},
               {out_of_range(
                   "argsort",
                   [] {
                     argsort(zeros({2, 3}), 2);
                   },
                   "", is_a<IndexError>)}}};
  for (const bool descending : {false, true}) {
    const Op op = [=](const Tensor& x, int64_t dim) { return ValuesIndices{x, argsort(x, dim, descending)}; };
    all[2].samples =
        joined(all[2].samples, rows_of_four(
                                   op, [=](const Row& row) { return order_of(row, descending); }, true, Of::indices));
  }
  return all;
});

const RegisterOpCases selecting([] {
  const auto kth = [](int64_t k, bool keepdim) {
    const Op op = [=](const Tensor& x, int64_t dim) { return kthvalue(x, k, dim, keepdim); };
    return rows_of_four(
        op, [=](const Row& row) { return Row{order_of(row, false)[static_cast<size_t>(k - 1)]}; }, keepdim);
  };
  const auto middle = [](bool keepdim) {
    const Op op = [=](const Tensor& x, int64_t dim) { return median(x, dim, keepdim); };
    return rows_of_four(op, median_of, keepdim);
  };
  const Op one = [](const Tensor& x, int64_t dim) { return topk(x, 1, dim); };
  const auto of_all = [](const Tensor& x, const Shape&, bool) { return median(x); };
  const auto whole = [=](const char* label, InputSpec x, bool differentiable = true) {
    return reduced(label, std::move(x), {}, false, of_all, median_value, differentiable);
  };
  return OpCases{{"topk",
                  joined(joined(joined(top(2, true), top(3, false)), joined(top(4, true), top(0, false))), top_of_long_rows()),
                  {out_of_range(
                       "topk",
                       [] {
                         topk(zeros({2, 3}), 4);
                       },
                       "k = 4 of dim 1 of shape [2, 3]"),
                   out_of_range(
                       "topk",
                       [] {
                         topk(zeros({2, 3}), -1, 0);
                       },
                       "k = -1 of dim 0 of shape [2, 3]")}},
                 {"topk",
                  {picked(
                      "number", {{}}, 0, one, [](const Row&) { return Row{0}; }, true)},
                  {}},
                 {"kthvalue",
                  joined(kth(1, true), kth(3, false)),
                  {out_of_range(
                       "kthvalue",
                       [] {
                         kthvalue(zeros({2, 3}), 0);
                       },
                       "k = 0 of dim 1 of shape [2, 3] (it is counted from 1)"),
                   out_of_range(
                       "kthvalue",
                       [] {
                         kthvalue(zeros({2, 3}), 3, 0);
                       },
                       "", is_a<ShapeError>)}},
                 {"median",
                  joined(middle(true), middle(false)),
                  {out_of_range(
                       "median",
                       [] {
                         median(zeros({2, 0}), 1);
                       },
                       "no elements to choose from in dim 1 of shape [2, 0]"),
                   out_of_range(
                       "median", [] { median(zeros({0}, DType::int64)); }, "no elements to choose from in shape [0]")}},
                 {"median",
                  {whole("all", distinct({3, 4})), whole("odd", distinct({3, 5})), whole("number", {{}}),
                   whole("many", distinct({999})), whole("ties", kTies, false), whole("NaN", kNans, false),
                   whole("int64", integers({3, 4}), false), whole("nothing", {{0, 3}}, false)},
                  {}}};
});

}  // namespace
}  // namespace onestep
