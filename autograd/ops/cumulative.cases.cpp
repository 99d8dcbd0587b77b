#include <cmath>
#include <functional>

#include "autograd/ops/reduce_cases.h"

namespace onestep {
namespace {

using namespace reductions;
using Op = std::function<Tensor(const Tensor& x, int64_t dim)>;
/// y_i from y_{i-1} and x_i.
using Step = double (*)(double before, double x);

Row running(const Row& row, Step step) {
  Row y = row;
  for (size_t i = 1; i < y.size(); ++i) y[i] = step(y[i - 1], row[i]);
  return y;
}

OpSample along(const char* label, InputSpec x, int dim, const Op& op, const std::function<Row(const Row&)>& f,
               bool differentiable = true) {
  return {label,
          {std::move(x)},
          [=](const std::vector<Tensor>& in) { return op(in[0], dim); },
          [=](const std::vector<Values>& in) { return naive::along(in[0], dim, f); },
          differentiable};
}

std::vector<OpSample> samples(InputSpec (*spec)(const Shape&), const Op& op, const std::function<Row(const Row&)>& f,
                              bool differentiable = true) {
  return {along("vector", spec({7}), 0, op, f, differentiable),
          along("first", spec({4, 3}), 0, op, f, differentiable),
          along("middle", spec({2, 3, 4}), 1, op, f, differentiable),
          along("last", spec({2, 3, 4}), -1, op, f, differentiable),
          along("number", spec({}), 0, op, f, differentiable),
          along("empty", spec({0, 3}), 0, op, f, differentiable),
          along("no outputs", spec({3, 0}), 0, op, f, differentiable),
          along("rank 6", spec({2, 1, 3, 1, 2, 2}), 2, op, f, differentiable),
          along("many lines", spec({3, 500}), 0, op, f, differentiable)};
}

double plus(double before, double x) { return before + x; }
double times(double before, double x) { return before * x; }
double log_add(double before, double x) {
  if (std::isinf(before) && before == x) return x;
  const double most = std::max(before, x);
  return std::isnan(before) || std::isnan(x) ? kNan
         : std::isinf(most)                  ? most
                                             : most + std::log1p(std::exp(std::min(before, x) - most));
}

/// Where the extremum so far is: the last of equal ones, and the last NaN.
Row places(const Row& row, bool largest) {
  Row y;
  size_t best = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double v = row[i], b = row[best];
    if (std::isnan(v) || (!std::isnan(b) && (largest ? v >= b : v <= b))) best = i;
    y.push_back(static_cast<double>(best));
  }
  return y;
}

Row extrema(const Row& row, bool largest) {
  Row y;
  for (const double i : places(row, largest)) y.push_back(row[static_cast<size_t>(i)]);
  return y;
}

OpCases extremum(const char* name, ValuesIndices (*op)(const Tensor&, int64_t), bool largest) {
  const Op values_of = [op](const Tensor& x, int64_t dim) { return op(x, dim).values; };
  const Op places_of = [op](const Tensor& x, int64_t dim) { return op(x, dim).indices; };
  const auto best = [=](const Row& row) { return extrema(row, largest); };
  const auto where = [=](const Row& row) { return places(row, largest); };
  OpCases all{{name,
               samples(distinct, values_of, best),
               {{"dim out of range",
                 [op] {
                   op(zeros({2, 3}), 2);
                 },
                 std::string(name) + ": ", is_a<IndexError>}}},
              {name, samples(drawn, places_of, where, false), {}}};
  for (const InputSpec& x : {kTies, kNans, integers({3, 4})}) {
    all[0].samples.push_back(along("special values", x, 1, values_of, best, false));
    all[1].samples.push_back(along("special values", x, 1, places_of, where, false));
  }
  return all;
}

const RegisterOpCases cumulative([] {
  const Op sums_of = [](const Tensor& x, int64_t dim) { return cumsum(x, dim); };
  const auto sum_of = [](const Row& row) { return running(row, plus); };
  const Op products_of = [](const Tensor& x, int64_t dim) { return cumprod(x, dim); };
  const auto product = [](const Row& row) { return running(row, times); };
  const auto log_sum = [](const Row& row) { return running(row, log_add); };
  std::vector<OpSample> sums = samples(drawn, sums_of, sum_of);
  sums.push_back(along("int64", integers({2, 5}), 1, sums_of, sum_of, false));
  std::vector<OpSample> products = samples(drawn, products_of, product), log_sums = samples(drawn, logcumsumexp, log_sum);
  products.push_back(along("zeros", values({2, 5}, {2, 0, 3, -1, 2, 0, 1, 0, 4, 3}), 1, products_of, product));
  products.push_back(along("int64", integers({2, 5}), 1, products_of, product, false));
  products.push_back(along("bool", {.shape = 3, .dtype = DType::boolean, .values = {1, 1, 0}}, 0, products_of, product, false));
  log_sums.push_back(along("far apart", values({2, 4}, {-90, 80, 0, 81, 90, -90, 0, 89}), 1, logcumsumexp, log_sum));
  log_sums.push_back(along("special values", kNans, 1, logcumsumexp, log_sum, false));
  log_sums.push_back(
      along("infinities", values({2, 4}, {-kInf, -kInf, 1, 2, 3, -kInf, kInf, 1}), 1, logcumsumexp, log_sum, false));
  return OpCases{{"cumsum", sums, {out_of_range("cumsum", [](const Tensor& x) { cumsum(x, 2); })}},
                 {"cumprod", products, {out_of_range("cumprod", [](const Tensor& x) { cumprod(x, 2); })}},
                 {"logcumsumexp",
                  log_sums,
                  {out_of_range("logcumsumexp", [](const Tensor& x) { logcumsumexp(x, 2); }),
                   {"dtype",
                    [] {
                      logcumsumexp(tensor({1, 2}), 0);
                    },
                    "logcumsumexp: ", is_a<DTypeError>}}}};
});
const RegisterOpCases largest([] { return extremum("cummax", cummax, true); });
const RegisterOpCases least([] { return extremum("cummin", cummin, false); });

}  // namespace
}  // namespace onestep
