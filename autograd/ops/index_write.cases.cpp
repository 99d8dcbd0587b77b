#include <functional>
#include <string>

#include "autograd/ops/naive.h"
#include "autograd/ops_index.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using Op = std::function<Tensor(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source)>;
using Combine = double (*)(double own, double written);

struct Layout {
  const char* label;
  Shape x;
  int dim;
  std::vector<double> index;
  Shape source;
  bool distinct = true;
};

std::vector<Layout> layouts() {
  return {{"rows", {4, 3}, 0, {2, 0}, {2, 3}},
          {"columns", {2, 5}, -1, {4, 0, 1}, {2, 3}},
          {"middle dim", {2, 3, 2}, 1, {1, 2}, {2, 2, 2}},
          {"wide rows", {3, 150}, 0, {1}, {1, 150}},
          {"a number", {}, 0, {0}, {}},
          {"a vector", {4}, 0, {3, 1}, {2}},
          {"no index", {2, 3}, 1, {}, {2, 0}},
          {"no rows", {0, 3}, 1, {2, 1}, {0, 2}},
          {"repeated rows", {3, 4}, 0, {2, 0, 2, 2}, {4, 4}, false}};
}

InputSpec index_of(const Layout& l) {
  return {.shape = static_cast<int64_t>(l.index.size()), .dtype = DType::int64, .values = l.index};
}

/// x with combine(x, source) where slices are written, in order.
Values written(const std::vector<Values>& in, int dim, Combine combine) {
  Values y = in[0];
  const auto d = static_cast<size_t>(dim < 0 ? dim + y.shape.rank() : dim);
  for (int64_t i = 0; i < in[2].shape.numel(); ++i) {
    naive::Place place = naive::place_of(in[2].shape, i);
    place[d] = static_cast<int64_t>(in[1][place[d]]);
    double& own = y[naive::number_of(y.shape, place)];
    own = combine(own, in[2][i]);
  }
  return y;
}

std::vector<OpSample> samples(const Op& op, Combine combine, bool gradient_if_repeated) {
  std::vector<OpSample> all;
  for (const Layout& l : layouts())
    all.push_back({l.label,
                   {{l.x}, index_of(l), {l.source}},
                   [op, dim = l.dim](const std::vector<Tensor>& in) { return op(in[0], dim, in[1], in[2]); },
                   [combine, dim = l.dim](const std::vector<Values>& in) { return written(in, dim, combine); },
                   l.distinct || gradient_if_repeated});
  OpSample integers = all[0];
  for (const size_t i : {size_t{0}, size_t{2}}) integers.inputs[i].dtype = DType::int64;
  integers.differentiable = false;
  all.push_back(integers);
  return all;
}

/// The value of a fill takes source's place: a number, or a third input.
template <class Fill>
std::vector<OpSample> fills(Fill fill, bool by_tensor) {
  std::vector<OpSample> all;
  for (const Layout& l : layouts())
    all.push_back({l.label,
                   by_tensor ? std::vector<InputSpec>{{l.x}, index_of(l), {{}}} : std::vector<InputSpec>{{l.x}, index_of(l)},
                   [fill, dim = l.dim](const std::vector<Tensor>& in) { return fill(in[0], dim, in[1], in.back()); },
                   [by_tensor, l](std::vector<Values> in) {
                     Values source(l.source);
                     for (double& v : source.data) v = by_tensor ? in[2][0] : -1.5;
                     return written({in[0], in[1], source}, l.dim, [](double, double v) { return v; });
                   }});
  OpSample from_the_end = all[0];
  from_the_end.label = "positions from the end";
  from_the_end.inputs[1].values = {-1, -4};
  from_the_end.reference = [by_tensor](const std::vector<Values>& in) {
    Values y = in[0];
    for (const int64_t i : {0, 1, 2, 9, 10, 11}) y[i] = by_tensor ? in[2][0] : -1.5;
    return y;
  };
  all.push_back(from_the_end);
  return all;
}

Op on_copy(const Op& op) {
  return [op](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
    return op(clone(x), dim, index, source);
  };
}
Op on_transposed_copy(const Op& op) {
  return [op](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
    return op(transpose(clone(transpose(x, 0, -1)), 0, -1), dim, index, source);
  };
}

std::vector<OpSample> samples_in_place(const Op& op, Combine combine, bool gradient_if_repeated) {
  return joined(samples(on_copy(op), combine, gradient_if_repeated),
                samples(on_transposed_copy(op), combine, gradient_if_repeated));
}

double add_to(double own, double v) { return own + v; }
double subtract_twice(double own, double v) { return own - 2 * v; }
double replace(double /*own*/, double v) { return v; }

std::vector<OpError> errors(const std::string& name, const Op& op) {
  const auto refused = [&](const char* label, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                           const std::string& message, ErrorType type = is_a<Error>) {
    return OpError{label, [=] { op(x, dim, index, source); }, name + ": " + message, type};
  };
  const Tensor matrix = zeros({2, 3}), row = zeros({1, 3});
  return {refused("position above", matrix, 0, tensor({2}), row, "", is_a<IndexError>),
          refused("negative position", matrix, 0, tensor({-1}), row, "", is_a<IndexError>),
          refused("index rank", matrix, 0, tensor({{0}}), row, "the index must be a vector: got shape [1, 1]"),
          refused("source", matrix, 0, tensor({0, 1}), row,
                  "2 slices along dim 0 of a tensor of shape [2, 3] have shape [2, 3]: got a source of shape [1, 3]"),
          refused("dtypes", matrix, 0, tensor({0}), zeros({1, 3}, DType::int64), "", is_a<DTypeError>),
          refused("index dtype", matrix, 0, tensor({0.0}), row, "", is_a<DTypeError>),
          refused("dim", matrix, 2, tensor({0}), row, "", is_a<IndexError>)};
}

std::vector<OpError> fill_errors(const std::string& name, Tensor (*fill)(const Tensor&, int64_t, const Tensor&, Scalar),
                                 Tensor (*fill_by)(const Tensor&, int64_t, const Tensor&, const Tensor&)) {
  return {
      {"position above", [=] { fill(zeros(2), 0, tensor({2}), 0); }, name + ": ", is_a<IndexError>},
      {"number that overflows", [=] { fill(zeros(2, DType::int64), 0, tensor({0}), 1e30); }, name + ": ", is_a<DTypeError>},
      {"value rank", [=] { fill_by(zeros(2), 0, tensor({0}), zeros(1)); },
       name + ": the value must be a number or a rank-0 tensor: got shape [1]"},
      {"index rank", [=] { fill(zeros(2), 0, tensor({{0}}), 0); }, name + ": the index must be a vector: got shape [1, 1]"}};
}

const RegisterOpCases registered([] {
  const Op add = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
    return index_add(x, dim, index, source);
  };
  const Op add_in_place = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
    return index_add_(x, dim, index, source);
  };
  const Op add_scaled = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
    return index_add(x, dim, index, source, -2);
  };
  return OpCases{
      {"index_add", joined(samples(add, add_to, true), samples(add_scaled, subtract_twice, true)), errors("index_add", add)},
      {"index_add_", samples_in_place(add_in_place, add_to, true), errors("index_add_", add_in_place)},
      {"index_add_",
       samples(on_copy([](const auto&... p) { return index_add_(p..., -2); }), subtract_twice, true),
       {{"fraction", [] { index_add_(zeros(2, DType::int64), 0, tensor({0}), tensor({1}), 0.5); },
         "index_add_: alpha is a fraction for dtype int64"}}},
      {"index_copy", samples(index_copy, replace, false), errors("index_copy", index_copy)},
      {"index_copy_", samples_in_place(index_copy_, replace, false), errors("index_copy_", index_copy_)}};
});

const RegisterOpCases filling([] {
  const auto number = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor&) {
    return index_fill(x, dim, index, -1.5);
  };
  const auto tensor_value = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& v) {
    return index_fill(x, dim, index, v);
  };
  const auto number_in_place = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor&) {
    return index_fill_(clone(x), dim, index, -1.5);
  };
  const auto tensor_in_place = [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& v) {
    return index_fill_(clone(x), dim, index, v);
  };
  return OpCases{{"index_fill", joined(fills(number, false), fills(tensor_value, true)),
                  fill_errors("index_fill", index_fill, index_fill)},
                 {"index_fill_", joined(fills(number_in_place, false), fills(tensor_in_place, true)),
                  fill_errors("index_fill_", index_fill_, index_fill_)}};
});

}  // namespace
}  // namespace onestep
