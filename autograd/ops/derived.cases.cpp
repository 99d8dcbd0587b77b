#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/operators.h"
#include "autograd/ops/reduce_cases.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using namespace reductions;
using naive::Place;

double sum_of(const Row& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
double mean_of(const Row& x) { return sum_of(x) / static_cast<double>(x.size()); }
double var_of(const Row& x, double correction) {
  double squares = 0;
  for (const double v : x) squares += (v - mean_of(x)) * (v - mean_of(x));
  return squares / std::max(0.0, static_cast<double>(x.size()) - correction);
}
Row numbers(const Row& x) {
  Row kept;
  std::copy_if(x.begin(), x.end(), std::back_inserter(kept), [](double v) { return v == v; });
  return kept;
}
double count_of(const Row& x) {
  return static_cast<double>(std::count_if(x.begin(), x.end(), [](double v) { return v != 0; }));
}

constexpr auto kNanSum = [](const Tensor& x, const Shape& dims, bool keepdim) { return nansum(x, dims, keepdim); };
constexpr auto kNanMean = [](const Tensor& x, const Shape& dims, bool keepdim) { return nanmean(x, dims, keepdim); };
constexpr auto kCount = [](const Tensor& x, const Shape& dims, bool) { return count_nonzero(x, dims); };

/// Both results of an op, one minus three times the other, so that one sample sees both.
double var_and_mean(const Row& x) { return var_of(x, 0.5) - 3 * mean_of(x); }
double std_and_mean(const Row& x) { return std::sqrt(var_of(x, 0.5)) - 3 * mean_of(x); }
double extrema_of(const Row& x) { return *std::min_element(x.begin(), x.end()) - 3 * *std::max_element(x.begin(), x.end()); }
constexpr auto kVarMean = [](const Tensor& x, const Shape& dims, bool keepdim) {
  const VarMean y = var_mean(x, dims, 0.5, keepdim);
  return y.var - 3 * y.mean;
};
constexpr auto kStdMean = [](const Tensor& x, const Shape& dims, bool keepdim) {
  const StdMean y = std_mean(x, dims, 0.5, keepdim);
  return y.std - 3 * y.mean;
};
constexpr auto kExtrema = [](const Tensor& x, int64_t dim, bool keepdim) {
  const MinMax y = aminmax(x, dim, keepdim);
  return y.min - 3 * y.max;
};
constexpr auto kExtremaOfAll = [](const Tensor& x, const Shape&, bool) {
  const MinMax y = aminmax(x);
  return y.min - 3 * y.max;
};
constexpr auto kWideSum = [](const Tensor& x, const Shape& dims, bool keepdim) {
  return sum(x, dims, keepdim, DType::float64);
};
constexpr auto kWideMean = [](const Tensor& x, const Shape& dims, bool keepdim) {
  return mean(x, dims, keepdim, DType::float64);
};

template <class Op, class F>
OpSample two(const char* label, const Shape& a, const Shape& b, Op op, F reference) {
  return {label,
          {{a}, {b}},
          [op](const std::vector<Tensor>& in) { return op(in[0], in[1]); },
          [reference](const std::vector<Values>& in) { return reference(in[0], in[1]); }};
}

/// [b, m, k] x [b, k, n] -> [b, m, n] as it stands, with sizes of 1 for dims that an operand lacks.
Values product(const Values& a, const Values& b, const Shape& result, int64_t batch, int64_t m, int64_t k, int64_t n) {
  Values y(result);
  for (int64_t p = 0; p < batch; ++p)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t l = 0; l < k; ++l) y[(p * m + i) * n + j] += a[(p * m + i) * k + l] * b[(p * k + l) * n + j];
  return y;
}
template <class Op>
OpSample multiplied(const char* label, const Shape& a, const Shape& b, const Shape& result, int64_t batch, int64_t m, int64_t k,
                    int64_t n, Op op) {
  return two(label, a, b, op, [=](const Values& x, const Values& y) { return product(x, y, result, batch, m, k, n); });
}

using Add = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar);

OpSample added(const char* label, Add op, const Shape& input, const Shape& a, const Shape& b, const Shape& result,
               int64_t batch, int64_t m, int64_t k, int64_t n, double beta, double alpha) {
  return {label,
          {{input}, {a}, {b}},
          [=](const std::vector<Tensor>& in) { return op(in[0], in[1], in[2], beta, alpha); },
          [=](const std::vector<Values>& in) {
            Values y = product(in[1], in[2], result, batch, m, k, n);
            for (int64_t i = 0; i < result.numel(); ++i) y[i] = alpha * y[i] + beta * naive::value_at(in[0], result, i);
            return y;
          }};
}

Values all_products(const Values& a, const Values& b) {
  Values y({a.shape[0], b.shape[0]});
  for (int64_t i = 0; i < y.shape.numel(); ++i) y[i] = a[i / b.shape[0]] * b[i % b.shape[0]];
  return y;
}

Values kronecker(const Values& a, const Values& b) {
  Shape left = a.shape, right = b.shape, shape;
  while (left.rank() < right.rank()) left.insert(0, 1);
  while (right.rank() < left.rank()) right.insert(0, 1);
  for (int d = 0; d < left.rank(); ++d) shape.push_back(left[d] * right[d]);
  Values y(shape);
  for (int64_t i = 0; i < shape.numel(); ++i) {
    const Place place = naive::place_of(shape, i);
    Place outer{}, inner{};
    for (int d = 0; d < shape.rank(); ++d) {
      const auto at = static_cast<size_t>(d);
      outer[at] = place[at] / right[d];
      inner[at] = place[at] % right[d];
    }
    y[i] = a[naive::number_of(left, outer)] * b[naive::number_of(right, inner)];
  }
  return y;
}

OpSample crossed(const char* label, const Shape& a, const Shape& b, int64_t dim) {
  return two(
      label, a, b, [dim](const Tensor& x, const Tensor& y) { return cross(x, y, dim); },
      [dim](const Values& x, const Values& y) {
        Values z(naive::broadcast(x.shape, y.shape));
        const auto d = static_cast<size_t>(dim < 0 ? dim + z.shape.rank() : dim);
        for (int64_t i = 0; i < z.shape.numel(); ++i) {
          Place next = naive::place_of(z.shape, i), last = next;
          next[d] = (next[d] + 1) % 3;
          last[d] = (last[d] + 2) % 3;
          const int64_t u = naive::number_of(z.shape, next), v = naive::number_of(z.shape, last);
          z[i] = naive::value_at(x, z.shape, u) * naive::value_at(y, z.shape, v) -
                 naive::value_at(x, z.shape, v) * naive::value_at(y, z.shape, u);
        }
        return z;
      });
}

OpSample differences(const char* label, InputSpec x, int64_t n, int d, bool with_ends) {
  return {label,
          {std::move(x)},
          [=](const std::vector<Tensor>& in) {
            const Tensor end = with_ends ? narrow(in[0], d, 0, 1) : Tensor();
            return with_ends ? diff(in[0], n, d, end, end) : diff(in[0], n, d);
          },
          [=](const std::vector<Values>& in) {
            const auto along = static_cast<size_t>(d);
            Values y = in[0];
            if (with_ends) {
              Shape shape = y.shape;
              shape[d] += 2;
              y = naive::rearrange(y, shape, [=](Place place) {
                place[along] = place[along] == 0 || place[along] == shape[d] - 1 ? 0 : place[along] - 1;
                return place;
              });
            }
            for (int64_t step = 0; step < n && y.shape[d] > 0; ++step) {
              Shape shape = y.shape;
              --shape[d];
              Values less(shape);
              for (int64_t i = 0; i < shape.numel(); ++i) {
                Place place = naive::place_of(shape, i), next = place;
                ++next[along];
                less[i] = y[naive::number_of(y.shape, next)] - y[naive::number_of(y.shape, place)];
              }
              y = less;
            }
            return y;
          }};
}

Tensor f(const Shape& shape) { return zeros(shape); }
OpError error(const char* label, std::function<void()> call, const char* message, ErrorType type = is_a<Error>) {
  return {label, std::move(call), message, type};
}

const RegisterOpCases registered([] {
  const auto squares_of = [](const Values& a, const Values& b) {
    Values y{Shape()};
    for (int64_t i = 0; i < a.shape.numel(); ++i) y[0] += (a[i] - b[i]) * (a[i] - b[i]);
    y[0] = std::sqrt(y[0]);
    return y;
  };
  const auto sizes_of = [](const Values& a, const Values& b) {
    Values y{Shape()};
    for (int64_t i = 0; i < a.shape.numel(); ++i) y[0] += std::abs(a[i] - b[i]);
    return y;
  };
  return OpCases{
      {"nansum",
       joined(over_dims(drawn, kNanSum, sum_of),
              {reduced(
                   "NaN", kNans, 1, false, kNanSum, [](const Row& x) { return sum_of(numbers(x)); }, false),
               reduced("int64", integers({3, 4}), 1, false, kNanSum, sum_of, false)}),
       {}},
      {"nanmean",
       without(&OpSample::rounds_once,
               joined(over_dims(drawn, kNanMean, mean_of),
                      {reduced(
                          "NaN", kNans, 1, true, kNanMean, [](const Row& x) { return mean_of(numbers(x)); }, false)})),
       {error(
           "int64", [] { nanmean(zeros({2}, DType::int64)); }, "nanmean: ", is_a<DTypeError>)}},
      {"count_nonzero",
       {reduced("all", values({2, 3}, {0, 1, -0.0, kNan, 2, 0}), {}, false, kCount, count_of, false),
        reduced("rows", integers({3, 40}), 1, false, kCount, count_of, false),
        reduced("bool", {.shape = {3, 4}, .low = 0, .high = 2, .dtype = DType::boolean}, 0, false, kCount, count_of, false),
        reduced("empty", {{0, 3}}, 1, false, kCount, count_of, false)},
       {}},
      {"var_mean", without(&OpSample::rounds_once, over_dims(drawn, kVarMean, var_and_mean)), {}},
      {"std_mean",
       without(&OpSample::rounds_once, {reduced("all", drawn({2, 3, 4}), {}, false, kStdMean, std_and_mean),
                                        reduced("middle kept", drawn({2, 3, 4}), 1, true, kStdMean, std_and_mean),
                                        reduced("empty", drawn({0, 3}), 1, false, kStdMean, std_and_mean)}),
       {}},
      {"sum",
       {reduced("int64 as float64", integers({3, 4}), 1, true, kWideSum, sum_of, false),
        reduced(
            "bool as float64", {.shape = {3, 4}, .low = 0, .high = 2, .dtype = DType::boolean}, {}, false,
            [](const Tensor& x, const Shape&, bool) { return sum(x, DType::float64); }, sum_of, false)},
       {}},
      {"mean",
       {reduced("int64 as float64", integers({3, 4}), 1, true, kWideMean, mean_of, false),
        reduced(
            "bool as float64", {.shape = {3, 4}, .low = 0, .high = 2, .dtype = DType::boolean}, {}, false,
            [](const Tensor& x, const Shape&, bool) { return mean(x, DType::float64); }, mean_of, false)},
       {}},
      {"var",
       {reduced(
           "a fractional correction", drawn({2, 5}), 1, false,
           [](const Tensor& x, const Shape& dims, bool keepdim) { return var(x, dims, 1.5, keepdim); },
           [](const Row& x) { return var_of(x, 1.5); })},
       {}},
      {"std",
       {reduced(
           "a fractional correction", drawn({2, 5}), 1, false,
           [](const Tensor& x, const Shape& dims, bool keepdim) { return std(x, dims, 1.5, keepdim); },
           [](const Row& x) { return std::sqrt(var_of(x, 1.5)); })},
       {}},
      {"aminmax",
       without(&OpSample::rounds_once,
               joined(over_dim(distinct, kExtrema, extrema_of, true),
                      {reduced("all", distinct({3, 4}), {}, false, kExtremaOfAll, extrema_of),
                       reduced(
                           "no outputs", distinct({0, 3}), 1, false,
                           [](const Tensor& x, const Shape&, bool keepdim) { return kExtrema(x, 1, keepdim); }, extrema_of)})),
       {error(
           "nothing", [] { aminmax(f({0})); }, "aminmax: no elements to choose from in shape [0]")}},
      {"dist",
       without(&OpSample::rounds_once,
               {two(
                    "same shape", {3, 4}, {3, 4}, [](const Tensor& a, const Tensor& b) { return dist(a, b); }, squares_of),
                two(
                    "p = 1", {5}, {5}, [](const Tensor& a, const Tensor& b) { return dist(a, b, 1); }, sizes_of),
                two(
                    "empty", {0, 3}, {0, 3}, [](const Tensor& a, const Tensor& b) { return dist(a, b); }, squares_of)}),
       {}},
      {"diff",
       without(&OpSample::rounds_once,
               {differences("last", {{3, 5}}, 1, 1, false), differences("first", {{3, 5}}, 1, 0, false),
                differences("three times", {{2, 6}}, 3, 1, false),
                differences("more often than there are places", {{2, 3}}, 4, 1, false),
                differences("none", {{2, 3}}, 0, 1, false), differences("between ends", {{2, 4}}, 2, 1, true),
                differences("empty", {{0, 3}}, 1, 1, false), differences("no places", {{3, 0}}, 1, 1, false)}),
       {error(
            "number", [] { diff(f({})); }, "diff: a rank-0 tensor has no neighbours"),
        error(
            "n", [] { diff(f({3}), -1); }, "diff: n must not be negative: -1")}},
      {"mm",
       {multiplied("matrices", {3, 4}, {4, 5}, {3, 5}, 1, 3, 4, 5, mm),
        multiplied("empty", {0, 4}, {4, 2}, {0, 2}, 1, 0, 4, 2, mm)},
       {error(
           "ranks",
           [] {
             mm(f({2}), f({2, 3}));
           },
           "mm: needs tensors of rank 2 and 2: got shapes [2] and [2, 3]")}},
      {"mv",
       {multiplied("matrix", {3, 4}, {4}, {3}, 1, 3, 4, 1, mv), multiplied("empty", {0, 4}, {4}, {0}, 1, 0, 4, 1, mv)},
       {error(
           "ranks",
           [] {
             mv(f({2, 3}), f({3, 2}));
           },
           "mv: ", is_a<ShapeError>)}},
      {"bmm",
       {multiplied("batch", {2, 3, 4}, {2, 4, 5}, {2, 3, 5}, 2, 3, 4, 5, bmm),
        multiplied("empty", {0, 3, 4}, {0, 4, 5}, {0, 3, 5}, 0, 3, 4, 5, bmm)},
       {error(
            "batch",
            [] {
              bmm(f({2, 3, 4}), f({1, 4, 5}));
            },
            "bmm: numbers of matrices differ: [2, 3, 4] x [1, 4, 5]"),
        error(
            "ranks",
            [] {
              bmm(f({2, 3}), f({3, 2}));
            },
            "bmm: ", is_a<ShapeError>)}},
      {"outer",
       {two("vectors", {3}, {4}, outer, all_products), two("one element", {1}, {5}, outer, all_products),
        two("empty", {0}, {4}, outer, all_products)},
       {error(
           "ranks",
           [] {
             outer(f({2, 3}), f({3}));
           },
           "outer: ", is_a<ShapeError>)}},
      {"addmm",
       {added("plain", addmm, {3, 5}, {3, 4}, {4, 5}, {3, 5}, 1, 3, 4, 5, 1, 1),
        added("factors", addmm, {5}, {3, 4}, {4, 5}, {3, 5}, 1, 3, 4, 5, 0.5, -2),
        added("beta 0", addmm, {3, 5}, {3, 4}, {4, 5}, {3, 5}, 1, 3, 4, 5, 0, 2),
        added("empty", addmm, {5}, {0, 4}, {4, 5}, {0, 5}, 1, 0, 4, 5, 1, 1)},
       {error(
           "input",
           [] {
             addmm(f({2}), f({3, 4}), f({4, 5}));
           },
           "addmm: ", is_a<ShapeError>)}},
      {"addmv",
       {added("plain", addmv, {3}, {3, 4}, {4}, {3}, 1, 3, 4, 1, 1, 1),
        added("factors", addmv, {}, {3, 4}, {4}, {3}, 1, 3, 4, 1, 0.5, -2),
        added("empty", addmv, {1}, {0, 4}, {4}, {0}, 1, 0, 4, 1, 1, 1)},
       {}},
      {"baddbmm",
       {added("plain", baddbmm, {2, 3, 5}, {2, 3, 4}, {2, 4, 5}, {2, 3, 5}, 2, 3, 4, 5, 1, 1),
        added("factors", baddbmm, {3, 1}, {2, 3, 4}, {2, 4, 5}, {2, 3, 5}, 2, 3, 4, 5, 0.5, -2),
        added("empty", baddbmm, {5}, {0, 3, 4}, {0, 4, 5}, {0, 3, 5}, 0, 3, 4, 5, 1, 1)},
       {}},
      {"tensordot",
       {multiplied("two dims", {2, 3, 4}, {3, 4, 5}, {2, 5}, 1, 2, 12, 5,
                   [](const Tensor& a, const Tensor& b) { return tensordot(a, b); }),
        multiplied("one dim", {2, 3, 4}, {4, 5}, {2, 3, 5}, 1, 6, 4, 5,
                   [](const Tensor& a, const Tensor& b) { return tensordot(a, b, 1); }),
        multiplied("no dim", {3}, {4}, {3, 4}, 1, 3, 1, 4, [](const Tensor& a, const Tensor& b) { return tensordot(a, b, 0); }),
        multiplied("lists", {2, 3, 4}, {3, 4, 5}, {2, 5}, 1, 2, 12, 5,
                   [](const Tensor& a, const Tensor& b) {
                     return tensordot(a, b, {-2, -1}, {0, 1});
                   }),
        multiplied("order", {2, 12}, {12, 5}, {2, 5}, 1, 2, 12, 5,
                   [](const Tensor& a, const Tensor& b) {
                     return tensordot(transpose(reshape(a, {2, 4, 3}), 1, 2), reshape(b, {4, 3, 5}), {1, 2}, {1, 0});
                   }),
        multiplied("empty", {0, 3}, {3, 2}, {0, 2}, 1, 0, 3, 2,
                   [](const Tensor& a, const Tensor& b) { return tensordot(a, b, 1); })},
       {error(
            "sizes",
            [] {
              tensordot(f({2, 3}), f({2, 3}), 1);
            },
            "tensordot: sizes differ in dims [1] of [2, 3] and [0] of [2, 3]"),
        error(
            "dims",
            [] {
              tensordot(f({2, 3}), f({2}));
            },
            "tensordot: 2 dims of shapes [2, 3] and [2]"),
        error(
            "lists", [] { tensordot(f({2}), f({2}), {0}, {}); }, "tensordot: lists of dims differ in length: [0] and []")}},
      {"kron",
       {two("matrices", {2, 3}, {3, 2}, kron, kronecker), two("ranks", {2}, {3, 2, 2}, kron, kronecker),
        two("numbers", {}, {}, kron, kronecker), two("cubes", {2, 3, 2}, {2, 1, 3}, kron, kronecker),
        two("empty", {0, 2}, {3, 2}, kron, kronecker)},
       {}},
      {"cross",
       without(&OpSample::rounds_once, {crossed("vectors", {3}, {3}, -1), crossed("rows", {4, 3}, {4, 3}, -1),
                                        crossed("columns", {3, 4}, {3, 1}, 0), crossed("empty", {0, 3}, {1, 3}, 1)}),
       {error(
           "sizes",
           [] {
             cross(f({2, 4}), f({2, 4}));
           },
           "cross: needs vectors of 3 in dim -1: got shapes [2, 4] and [2, 4]")}},
      {"trace",
       {{"wide",
         {{{3, 4}}},
         [](const std::vector<Tensor>& in) { return trace(in[0]); },
         [](const std::vector<Values>& in) {
           Values y{Shape()};
           y[0] = in[0][0] + in[0][5] + in[0][10];
           return y;
         }},
        {"empty",
         {{{0, 4}}},
         [](const std::vector<Tensor>& in) { return trace(in[0]); },
         [](const std::vector<Values>&) { return Values{Shape()}; }}},
       {error(
           "rank", [] { trace(f({3})); }, "trace: needs a matrix: got shape [3]")}},
  };
});

}  // namespace
}  // namespace onestep
