#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "autograd/grad.h"
#include "autograd/ops/naive.h"
#include "autograd/ops_index.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using Row = std::vector<double>;
/// An op on x, index and source.
using Op = std::function<Tensor(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src)>;
/// The new value of an element from its own and those that are written to it, in order.
using Combine = double (*)(double own, const Row& written);

/// Shapes, and where the index points.
struct Layout {
  const char* label;
  Shape x;
  int dim;
  Shape index;
  std::vector<double> places;
  Shape src;
  bool distinct = true;  ///< No position is named twice.
};

std::vector<double> counted(int64_t n, int64_t step, int64_t size) {
  std::vector<double> places;
  for (int64_t i = 0; i < n; ++i) places.push_back(static_cast<double>(i * step % size));
  return places;
}

std::vector<Layout> layouts() {
  return {{"along rows", {3, 4}, 0, {2, 4}, {0, 1, 2, 0, 2, 0, 1, 1}, {2, 4}},
          {"along columns", {3, 4}, 1, {3, 2}, {3, 0, 1, 2, 0, 1}, {3, 2}},
          {"smaller than the tensor and the source", {4, 5}, -1, {2, 3}, {4, 0, 1, 2, 1, 0}, {3, 4}},
          {"middle dim", {2, 3, 2}, 1, {2, 2, 2}, {0, 1, 2, 0, 1, 1, 0, 2}, {2, 2, 2}},
          {"a vector", {5}, 0, {3}, {4, 0, 2}, {3}},
          {"one place for a longer source", {5}, 0, {1}, {3}, {3}},
          {"one place for a larger source", {3, 4}, 1, {1, 1}, {2}, {2, 3}},
          {"numbers", {}, 0, {}, {0}, {}},
          {"a number by a vector", {}, -1, {1}, {0}, {1}},
          {"a vector by a number", {3}, 0, {}, {2}, {1}},
          {"no index", {3, 4}, 0, {0, 4}, {}, {2, 4}},
          {"no columns", {3, 0}, 0, {2, 0}, {}, {2, 0}},
          {"many columns", {2, 150}, 0, {1, 150}, counted(150, 1, 2), {1, 150}},
          {"repeated rows", {3, 2}, 0, {4, 2}, {0, 1, 2, 1, 0, 1, 0, 0}, {4, 2}, false},
          {"repeated columns", {2, 70}, 1, {2, 90}, counted(180, 3, 7), {2, 90}, false}};
}

Values scattered(const std::vector<Values>& in, int dim, Combine combine) {
  const Shape& shape = in[0].shape;
  const int d = dim < 0 ? dim + std::max(shape.rank(), 1) : dim;
  std::vector<Row> written(in[0].data.size());
  for (int64_t i = 0; i < in[1].shape.numel(); ++i) {
    naive::Place place = naive::place_of(in[1].shape, i);
    const double value = in[2][naive::number_of(in[2].shape, place)];
    place[static_cast<size_t>(d)] = static_cast<int64_t>(in[1][i]);
    written[static_cast<size_t>(naive::number_of(shape, place))].push_back(value);
  }
  Values y = in[0];
  for (size_t i = 0; i < written.size(); ++i)
    if (!written[i].empty()) y.data[i] = combine(y.data[i], written[i]);
  return y;
}

InputSpec places(const Layout& l) { return {.shape = l.index, .dtype = DType::int64, .values = l.places}; }

/// Values 1/8 apart that no other input of another `shift` has.
InputSpec apart(const Shape& shape, double shift) {
  InputSpec spec{shape};
  for (int64_t i = 0; i < shape.numel(); ++i) spec.values.push_back(static_cast<double>(i * 7919 % 64) / 8 - 4 + shift);
  return spec;
}

OpSample sample(const Layout& l, const InputSpec& x, const InputSpec& src, const Op& op, Combine combine, bool differentiable) {
  return {l.label,
          {x, places(l), src},
          [op, dim = l.dim](const std::vector<Tensor>& in) { return op(in[0], dim, in[1], in[2]); },
          [dim = l.dim, combine](const std::vector<Values>& in) { return scattered(in, dim, combine); },
          differentiable};
}

/// The samples of an op, with drawn values or such as have no ties.
std::vector<OpSample> samples(const Op& op, Combine combine, bool gradient_if_repeated, bool ties_matter = false) {
  std::vector<OpSample> all;
  for (const Layout& l : layouts()) {
    const InputSpec x = ties_matter ? apart(l.x, 0) : InputSpec{l.x},
                    src = ties_matter ? apart(l.src, 1.0 / 16) : InputSpec{l.src};
    all.push_back(sample(l, x, src, op, combine, l.distinct || gradient_if_repeated));
  }
  const Layout rows = layouts()[0];
  all.push_back(sample(rows, {.shape = rows.x, .low = -9, .high = 9, .dtype = DType::int64},
                       {.shape = rows.src, .low = -9, .high = 9, .dtype = DType::int64}, op, combine, false));
  return all;
}

/// The op of the same name in place, on a copy in rows or columns.
Op on_copy(const Op& op) {
  return [op](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) { return op(clone(x), dim, index, src); };
}
Op on_transposed_copy(const Op& op) {
  return [op](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
    return op(transpose(clone(transpose(x, 0, -1)), 0, -1), dim, index, src);
  };
}

std::vector<OpSample> samples_in_place(const Op& op, Combine combine, bool gradient_if_repeated) {
  return joined(samples(on_copy(op), combine, gradient_if_repeated),
                samples(on_transposed_copy(op), combine, gradient_if_repeated));
}

double last(double /*own*/, const Row& written) { return written.back(); }
double fill(double /*own*/, const Row& /*written*/) { return 1.5; }
double add_all(double own, const Row& written) {
  for (const double v : written) own += v;
  return own;
}
double multiply_all(double own, const Row& written) {
  for (const double v : written) own *= v;
  return own;
}
double add_others(double /*own*/, const Row& written) { return add_all(0, written); }
double multiply_others(double /*own*/, const Row& written) { return multiply_all(1, written); }
double double_each(double own, const Row& written) { return own * std::pow(2, written.size()); }
double mean_of_all(double own, const Row& written) { return add_all(own, written) / static_cast<double>(written.size() + 1); }
double mean_of_others(double /*own*/, const Row& written) { return add_all(0, written) / static_cast<double>(written.size()); }
double largest_other(double /*own*/, const Row& written) { return *std::max_element(written.begin(), written.end()); }
double least_other(double /*own*/, const Row& written) { return *std::min_element(written.begin(), written.end()); }
double largest(double own, const Row& written) { return std::max(own, largest_other(own, written)); }
double least(double own, const Row& written) { return std::min(own, least_other(own, written)); }

double whole_mean(double own, const Row& written) { return std::floor(mean_of_all(own, written)); }

Op reducing(const std::string& name, bool include_self) {
  return [=](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
    return scatter_reduce(x, dim, index, src, name, include_self);
  };
}

/// scatter_reduce by a name, with and without x's own elements.
std::vector<OpSample> reductions(const std::string& name, Combine all, Combine others, bool ties_matter) {
  std::vector<OpSample> found =
      joined(samples(reducing(name, true), all, true, ties_matter), samples(reducing(name, false), others, true, ties_matter));
  for (OpSample& s : found) s.label = name + ", " + s.label;
  if (name == "mean") std::erase_if(found, [](const OpSample& s) { return s.inputs[0].dtype == DType::int64; });
  return found;
}

std::vector<OpSample> special_reductions() {
  const Layout l{"products with zeros", {2, 3}, 1, {2, 4}, {0, 0, 1, 2, 0, 0, 1, 1}, {2, 4}, false};
  const InputSpec x{.shape = l.x, .values = {2, 0, 1.5, -1, 3, 0}}, src{.shape = l.src, .values = {0, 3, -2, 0, 2, 1, 4, 0}};
  const InputSpec zeros{.shape = l.src, .values = {0, 0, -2, 0, 0, 0, 4, 0.5}};
  const Layout pairs{"mean of integers, rounded down", {4}, 0, {4}, {0, 0, 2, 3}, {4}, false};
  const InputSpec own{.shape = 4, .dtype = DType::int64, .values = {1, 5, -3, 4}};
  const InputSpec others{.shape = 4, .dtype = DType::int64, .values = {-2, -4, 2, 4}};
  return joined(
      {sample(l, x, src, reducing("prod", true), multiply_all, true),
       sample(l, x, src, reducing("prod", false), multiply_others, true),
       sample(pairs, own, others, reducing("mean", true), whole_mean, false)},
      without(&OpSample::twice_differentiable, {sample(l, x, zeros, reducing("prod", true), multiply_all, true),
                                                sample(l, x, zeros, reducing("prod", false), multiply_others, true)}));
}

/// An op that writes one number, which no source has.
template <class Call>
std::vector<OpSample> with_number(Call call, Combine combine) {
  std::vector<OpSample> all;
  for (const Layout& l : layouts())
    all.push_back({l.label,
                   {{l.x}, places(l)},
                   [call, dim = l.dim](const std::vector<Tensor>& in) { return call(in[0], dim, in[1]); },
                   [combine, dim = l.dim](const std::vector<Values>& in) {
                     return scattered({in[0], in[1], Values(in[1].shape)}, dim, combine);
                   }});
  return all;
}

std::vector<OpError> errors(const std::string& name, const Op& op) {
  const auto refused = [&](const char* label, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                           const std::string& message, ErrorType type = is_a<Error>) {
    return OpError{label, [=] { op(x, dim, index, src); }, name + ": " + message, type};
  };
  const Tensor matrix = zeros({2, 3}), one = zeros({1, 1});
  return {refused("position above", matrix, 1, tensor({{3}}), one, "", is_a<IndexError>),
          refused("negative position", matrix, 0, tensor({{-1}}), one, "", is_a<IndexError>),
          refused("ranks", matrix, 0, tensor({0}), zeros(1),
                  "index of shape [1] and source of shape [1] for a tensor of shape [2, 3] (all need the same number of dims)"),
          refused("index larger than the source", matrix, 0, tensor({{0, 0}}), one,
                  "index of shape [1, 2] is larger than the source of shape [1, 1] at dim 1"),
          refused("index larger than the tensor", zeros({2, 1}), 0, tensor({{0, 0}}), zeros({1, 2}),
                  "index of shape [1, 2] is larger than the tensor of shape [2, 1] at dim 1"),
          refused("dtypes", zeros(2), 0, tensor({0}), tensor({1}), "", is_a<DTypeError>),
          refused("index dtype", zeros(2), 0, tensor({0.0}), zeros(1), "", is_a<DTypeError>),
          refused("dim", zeros(2), 1, tensor({0}), zeros(1), "", is_a<IndexError>)};
}

constexpr auto kScatter = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter(x, dim, index, src);
};
constexpr auto kScatterInto = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_(x, dim, index, src);
};

/// scatter with a name for the reduction.
std::vector<OpSample> named(const char* reduce, Combine combine) {
  return samples(
      [=](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) { return scatter(x, dim, index, src, reduce); },
      combine, true);
}

const RegisterOpCases replacing([] {
  return OpCases{
      {"scatter", samples(kScatter, last, false), errors("scatter", kScatter)},
      {"scatter",
       joined(named("add", add_all), named("multiply", multiply_all)),
       {{"no such reduction", [] { scatter(zeros(2), 0, tensor({0}), 1, "max"); },
         "scatter: no reduction is called \"max\" (add or multiply)"},
        {"number that overflows", [] { scatter(zeros(2, DType::int64), 0, tensor({0}), 1e30); },
         "scatter: ", is_a<DTypeError>}}},
      {"scatter",
       joined(
           with_number([](const Tensor& x, int64_t dim, const Tensor& index) { return scatter(x, dim, index, 1.5); }, fill),
           with_number([](const Tensor& x, int64_t dim, const Tensor& index) { return scatter(x, dim, index, 2, "multiply"); },
                       double_each)),
       {}},
      {"scatter_", samples_in_place(kScatterInto, last, false), errors("scatter_", kScatterInto)},
      {"scatter_",
       with_number([](const Tensor& x, int64_t dim, const Tensor& index) { return scatter_(clone(x), dim, index, 1.5); }, fill),
       {{"leaf", [] { scatter_(zeros(2).requires_grad_(), 0, tensor({0}), 1); }, "scatter_: ", is_a<GradError>},
        {"expanded", [] { scatter_(zeros(1).expand(2), 0, tensor({0}), 1); }, "scatter_: ", is_a<ShapeError>}}}};
});

const RegisterOpCases adding([] {
  const Op in_place = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
    return scatter_add_(x, dim, index, src);
  };
  return OpCases{{"scatter_add", samples(scatter_add, add_all, true), errors("scatter_add", scatter_add)},
                 {"scatter_add_", samples_in_place(in_place, add_all, true), errors("scatter_add_", in_place)}};
});

const RegisterOpCases reduced([] {
  const Op in_place = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
    return scatter_reduce_(x, dim, index, src, "prod");
  };
  return OpCases{
      {"scatter_reduce",
       joined(reductions("sum", add_all, add_others, false), reductions("prod", multiply_all, multiply_others, false)),
       errors("scatter_reduce", reducing("sum", true))},
      {"scatter_reduce",
       joined(joined(reductions("mean", mean_of_all, mean_of_others, false), special_reductions()),
              joined(reductions("amax", largest, largest_other, true), reductions("amin", least, least_other, true))),
       {{"no such reduction", [] { scatter_reduce(zeros(2), 0, tensor({0}), zeros(1), "max"); },
         "scatter_reduce: no reduction is called \"max\" (sum, prod, mean, amax or amin)"},
        {"second derivative of several zeros",
         [] {
           const Tensor x = ones(1).requires_grad_(), src = zeros(2).requires_grad_();
           const Tensor y = scatter_reduce(x, 0, tensor({0, 0}), src, "prod");
           const Tensor first = autograd::grad({y}, {src}, {ones(1)}, {.create_graph = true})[0];
           sum(first).backward();
         },
         "scatter_reduce: a product with several zeros has no second derivative here"},
        {"mean of bools", [] { scatter_reduce(tensor({true}), 0, tensor({0}), tensor({true}), "mean"); },
         "scatter_reduce: no mean of bools"}}},
      {"scatter_reduce_", samples_in_place(in_place, multiply_all, true), errors("scatter_reduce_", in_place)}};
});

}  // namespace
}  // namespace onestep
