#include <cmath>

#include "autograd/ops/reduce_cases.h"

namespace onestep {
namespace {

using namespace reductions;

size_t place_of_max(const Row& x) {
  size_t best = 0;
  for (size_t i = 1; i < x.size() && !std::isnan(x[best]); ++i)
    if (x[i] > x[best] || std::isnan(x[i])) best = i;
  return best;
}
double max_of(const Row& x) { return x[place_of_max(x)]; }
double argmax_of(const Row& x) { return static_cast<double>(place_of_max(x)); }

double min_of(Row x) {
  for (double& v : x) v = -v;
  return -max_of(x);
}
double argmin_of(Row x) {
  for (double& v : x) v = -v;
  return argmax_of(x);
}

/// The cases of an extremum's four forms; `largest` or least.
struct Names {
  const char *over_dims, *of_all, *place;
};

template <class Amax, class Max, class MaxAlong, class Argmax, class ArgmaxAlong, class F, class G>
OpCases cases_of(const Names& names, Amax amax, Max max, MaxAlong max_along, Argmax argmax, ArgmaxAlong argmax_along, F best,
                 G place) {
  const auto over = [=](const Tensor& x, const Shape& dims, bool keepdim) { return amax(x, dims, keepdim); };
  const auto all = [=](const Tensor& x, const Shape&, bool) { return max(x); };
  const auto along = [=](const Tensor& x, int64_t dim, bool keepdim) { return max_along(x, dim, keepdim).values; };
  const auto where = [=](const Tensor& x, int64_t dim, bool keepdim) { return max_along(x, dim, keepdim).indices; };
  const auto place_along = [=](const Tensor& x, int64_t dim, bool keepdim) { return argmax_along(x, dim, keepdim); };
  const auto place_of_all = [=](const Tensor& x, const Shape&, bool) { return argmax(x); };
  const std::string a = names.over_dims, m = names.of_all, g = names.place;
  const InputSpec far_apart = values({3}, {-0x1p62, 0, 0x1p62});
  const InputSpec bools{.shape = {2, 3}, .dtype = DType::boolean, .values = {1, 0, 1, 0, 0, 0}};
  return {
      {a,
       joined(over_dims(distinct, over, best), {reduced("ties", kTies, 1, false, over, best, false),
                                                reduced("special values", kNans, 1, false, over, best, false),
                                                reduced("int64", integers({3, 4}), 0, true, over, best, false),
                                                reduced("bool", bools, 1, false, over, best, false)}),
       {{"over nothing",
         [=] {
           amax(zeros({2, 0}), Shape(1), false);
         },
         a + ": no elements to choose from in dims [1] of shape [2, 0]"}}},
      {m,
       joined(over_dim(distinct, along, best, true), {reduced("of all", distinct({3, 4}), {}, false, all, best),
                                                      reduced("of all int64", integers({3, 4}), {}, false, all, best, false),
                                                      reduced("of many", distinct({1000}), {}, false, all, best)}),
       {{"nothing",
         [=] {
           max(zeros({2, 0}));
         },
         m + ": no elements to choose from in shape [2, 0]"},
        {"over nothing",
         [=] {
           max_along(zeros({2, 0}), 1, false);
         },
         m + ": ", is_a<ShapeError>},
        {"dim out of range",
         [=] {
           max_along(zeros({2, 3}), 2, false);
         },
         m + ": ", is_a<IndexError>}}},
      {m, over_dim(distinct, where, place, false), {}},
      {g,
       joined(joined(over_dim(drawn, place_along, place, false),
                     without(&OpSample::takes_int32,
                             {reduced("far apart", {.shape = 3, .dtype = DType::int64, .values = far_apart.values}, {}, false,
                                      place_of_all, place, false)})),
              {reduced("of all", drawn({3, 4}), {}, false, place_of_all, place, false),
               reduced("ties", kTies, {}, false, place_of_all, place, false),
               reduced("special values", kNans, {}, false, place_of_all, place, false),
               reduced("int64", integers({30}), {}, false, place_of_all, place, false),
               reduced("bool", bools, {}, false, place_of_all, place, false)}),
       {{"nothing", [=] { argmax(zeros({0})); }, g + ": ", is_a<ShapeError>},
        {"dim out of range",
         [=] {
           argmax_along(zeros({2, 3}), 2, false);
         },
         g + ": ", is_a<IndexError>}}}};
}

const RegisterOpCases largest([] {
  return cases_of(
      {"amax", "max", "argmax"}, amax, [](const Tensor& x) { return max(x); },
      [](const Tensor& x, int64_t dim, bool keepdim) { return max(x, dim, keepdim); },
      [](const Tensor& x) { return argmax(x); },
      [](const Tensor& x, int64_t dim, bool keepdim) { return argmax(x, dim, keepdim); }, max_of, argmax_of);
});
const RegisterOpCases least([] {
  return cases_of(
      {"amin", "min", "argmin"}, amin, [](const Tensor& x) { return min(x); },
      [](const Tensor& x, int64_t dim, bool keepdim) { return min(x, dim, keepdim); },
      [](const Tensor& x) { return argmin(x); },
      [](const Tensor& x, int64_t dim, bool keepdim) { return argmin(x, dim, keepdim); }, min_of, argmin_of);
});

}  // namespace
}  // namespace onestep
