#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "autograd/ops/reduce_cases.h"

namespace onestep {
namespace {

using namespace reductions;

double sum_of(const Row& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
double mean_of(const Row& x) { return sum_of(x) / static_cast<double>(x.size()); }
auto var_of(int64_t correction) {
  return [correction](const Row& x) {
    double squares = 0;
    for (double v : x) squares += (v - mean_of(x)) * (v - mean_of(x));
    return squares / std::max(0.0, static_cast<double>(x.size()) - static_cast<double>(correction));
  };
}

constexpr auto kSum = [](const Tensor& x, const Shape& dims, bool keepdim) { return sum(x, dims, keepdim); };
constexpr auto kMean = [](const Tensor& x, const Shape& dims, bool keepdim) { return mean(x, dims, keepdim); };
constexpr auto kVar = [](const Tensor& x, const Shape& dims, bool keepdim) { return var(x, dims, 0, keepdim); };
constexpr auto kUnbiased = [](const Tensor& x, const Shape& dims, bool keepdim) { return var(x, dims, 1, keepdim); };

OpSample with_bools() {
  return reduced("bool", {.shape = {3, 4}, .low = 0, .high = 2, .dtype = DType::boolean}, 1, false, kSum, sum_of, false);
}

constexpr auto kStd = [](const Tensor& x, const Shape& dims, bool keepdim) { return std(x, dims, 0, keepdim); };
constexpr auto kUnbiasedStd = [](const Tensor& x, const Shape& dims, bool keepdim) { return std(x, dims, 1, keepdim); };
constexpr auto kProd = [](const Tensor& x, int64_t dim, bool keepdim) { return prod(x, dim, keepdim); };
constexpr auto kProdOfAll = [](const Tensor& x, const Shape&, bool) { return prod(x); };

double std_of(const Row& x) { return std::sqrt(var_of(0)(x)); }
double unbiased_std_of(const Row& x) { return std::sqrt(var_of(1)(x)); }
double product_of(const Row& x) { return std::accumulate(x.begin(), x.end(), 1.0, std::multiplies<>()); }
/// Values around 1, so that a long product neither vanishes nor overflows.
InputSpec near_one(const Shape& shape) { return {shape, 0.99, 1.01}; }

double add_square(double sum, double size) { return sum + size * size; }
double add_cube(double sum, double size) { return sum + size * size * size; }
double add_size(double sum, double size) { return sum + size; }
double count(double sum, double size) { return sum + (size != 0); }
double larger(double best, double size) { return std::max(best, size); }
double smaller(double best, double size) { return std::min(best, size); }

template <double (*F)(double sum_or_best, double size)>
double folded(const Row& x, double start) {
  for (const double v : x) start = F(start, std::abs(v));
  return start;
}
/// norm(x, p) against `f`; no value is near 0, where |x| has no derivative.
template <class F>
std::vector<OpSample> norms(double p, F f) {
  const auto spec = [](const Shape& shape) {
    InputSpec numbers{shape};
    for (int64_t i = 0; i < shape.numel(); ++i) {
      const double size = 0.25 + static_cast<double>(i * 7919 % shape.numel()) / 16;
      numbers.values.push_back(i % 3 == 0 ? -size : size);
    }
    return numbers;
  };
  const auto op = [p](const Tensor& x, const Shape& dims, bool keepdim) { return norm(x, p, dims, keepdim); };
  const std::string label = "p = " + std::to_string(p) + ", ";
  return {reduced(label + "all", spec({2, 3, 4}), {}, false, op, f), reduced(label + "last", spec({2, 3, 4}), -1, false, op, f),
          reduced(label + "two kept", spec({2, 3, 4}), {0, 2}, true, op, f),
          reduced(label + "number", spec({}), {}, false, op, f), reduced(label + "no outputs", spec({0, 3}), 1, false, op, f)};
}

const RegisterOpCases registered([] {
  return OpCases{
      {"sum",
       joined(over_dims(drawn, kSum, sum_of),
              {reduced("over nothing", drawn({2, 0}), 1, false, kSum, sum_of),
               reduced("int64", integers({3, 4}), 0, false, kSum, sum_of, false), with_bools(),
               reduced("large", values({70000}, std::vector<double>(70000, 0.125)), {}, false, kSum, sum_of),
               reduced("special values", kNans, 0, false, kSum, sum_of, false)}),
       {out_of_range("sum", [](const Tensor& x) { sum(x, 2); }),
        {"repeated dim",
         [] {
           sum(zeros({2, 3}), {0, -2});
         },
         "sum: ", is_a<ShapeError>}}},
      {"mean",
       joined(over_dims(drawn, kMean, mean_of), {reduced("over nothing", drawn({2, 0}), 1, false, kMean, mean_of, false)}),
       {{"int64", [] { mean(zeros({2}, DType::int64)); }, "mean: ", is_a<DTypeError>},
        out_of_range("mean", [](const Tensor& x) { mean(x, 2); })}},
      {"var",
       joined(over_dims(drawn, kVar, var_of(0)),
              {reduced("unbiased", drawn({3, 5}), 1, false, kUnbiased, var_of(1)),
               reduced("unbiased of all", drawn({3, 5}), {}, false, kUnbiased, var_of(1)),
               reduced("of one element", drawn({3, 1}), 1, true, kUnbiased, var_of(1), false),
               reduced("over nothing", drawn({2, 0}), 1, false, kVar, var_of(0), false)}),
       {{"bool", [] { var(zeros({2}, DType::boolean)); }, "var: ", is_a<DTypeError>},
        out_of_range("var", [](const Tensor& x) { var(x, 2); })}},
      {"std",
       joined(over_dims(drawn, kStd, std_of),
              {reduced("unbiased", drawn({3, 5}), 1, false, kUnbiasedStd, unbiased_std_of),
               reduced("of one element", drawn({3, 1}), 1, true, kUnbiasedStd, unbiased_std_of, false),
               reduced("of equal elements", values({2, 3}, {1, 1, 1, 2, 2, 2}), 1, false, kStd, std_of, false)}),
       {out_of_range("std", [](const Tensor& x) { std(x, 2); })}},
      {"norm",
       joined(joined(joined(norms(2, [](const Row& x) { return std::sqrt(folded<add_square>(x, 0)); }),
                            norms(1, [](const Row& x) { return folded<add_size>(x, 0); })),
                     joined(norms(kInf, [](const Row& x) { return folded<larger>(x, 0); }),
                            norms(-kInf, [](const Row& x) { return folded<smaller>(x, kInf); }))),
              joined(norms(3, [](const Row& x) { return std::cbrt(folded<add_cube>(x, 0)); }),
                     norms(0, [](const Row& x) { return folded<count>(x, 0); }))),
       {{"int64", [] { norm(zeros({2}, DType::int64)); }, "norm: ", is_a<DTypeError>}}},
      {"prod",
       joined(over_dim(near_one, kProd, product_of, true),
              {reduced("of all", near_one({3, 4}), {}, false, kProdOfAll, product_of),
               reduced(
                   "with one zero", values({2, 3}, {2, 0, 3, 1, 2, 4}), 1, false,
                   [](const Tensor& x, const Shape& dims, bool keepdim) { return prod(x, dims[0], keepdim); }, product_of),
               reduced(
                   "with zeros", values({2, 3}, {0, 0, 3, 0, 2, 4}), 1, false,
                   [](const Tensor& x, const Shape& dims, bool keepdim) { return prod(x, dims[0], keepdim); }, product_of),
               reduced("int64", integers({3, 4}), {}, false, kProdOfAll, product_of, false),
               reduced("over nothing", drawn({2, 0}), {}, false, kProdOfAll, product_of, false)}),
       {out_of_range("prod", [](const Tensor& x) { prod(x, 2); })}},
  };
});

}  // namespace
}  // namespace onestep
