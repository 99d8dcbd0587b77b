#include <functional>

#include "autograd/operators.h"
#include "autograd/ops/cases.h"
#include "autograd/ops/naive.h"
#include "autograd/ops_index.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor_index.h"

namespace onestep {
namespace {

/// For an element of the result, where in x it comes from.
using Source = std::function<naive::Place(const naive::Place& place, const std::vector<Values>& in)>;
using Indices = std::function<std::vector<TensorIndex>(const std::vector<Tensor>& in)>;

InputSpec mask(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::boolean, .values = std::move(values)};
}

/// index(x, indices of the other inputs), of `shape`, against x element by element.
struct Example {
  const char* label;
  Shape x;
  std::vector<InputSpec> tensors;
  Indices indices;
  Shape result;
  Source source;
};

int64_t entry(const Values& index, int64_t i) { return static_cast<int64_t>(index[i]); }

std::vector<Example> examples() {
  return {{"position",
           {2, 3},
           {},
           [](const auto&) { return std::vector<TensorIndex>{TensorIndex(-1)}; },
           {3},
           [](const auto& p, const auto&) {
             return naive::Place{1, p[0]};
           }},
          {"slices",
           {4, 6},
           {},
           [](const auto&) {
             return std::vector<TensorIndex>{Slice(1, 3), Slice(None, None, 2)};
           },
           {2, 3},
           [](const auto& p, const auto&) {
             return naive::Place{1 + p[0], 2 * p[1]};
           }},
          {"None and Ellipsis",
           {2, 3, 4},
           {},
           [](const auto&) {
             return std::vector<TensorIndex>{None, Ellipsis, -2};
           },
           {1, 2, 3},
           [](const auto& p, const auto&) {
             return naive::Place{p[1], p[2], 2};
           }},
          {"nothing is left",
           {3, 2},
           {},
           [](const auto&) { return std::vector<TensorIndex>{Slice(2, 1)}; },
           {0, 2},
           [](const auto& p, const auto&) { return p; }},
          {"rows by a tensor",
           {4, 3},
           {places({5}, {2, 0, -1, 2, 1})},
           [](const auto& in) { return std::vector<TensorIndex>{in[1]}; },
           {5, 3},
           [](const auto& p, const auto& in) {
             return naive::Place{(entry(in[1], p[0]) + 4) % 4, p[1]};
           }},
          {"a matrix of positions",
           {4, 3},
           {places({2, 2}, {2, 0, 3, 2})},
           [](const auto& in) {
             return std::vector<TensorIndex>{Slice(), in[1] - 1};
           },
           {4, 2, 2},
           [](const auto& p, const auto& in) {
             return naive::Place{p[0], (entry(in[1], p[1] * 2 + p[2]) + 2) % 3};
           }},
          {"pairs of positions",
           {4, 3, 2},
           {places({3}, {0, 3, 3}), places({3}, {2, 1, 1})},
           [](const auto& in) {
             return std::vector<TensorIndex>{in[1], in[2]};
           },
           {3, 2},
           [](const auto& p, const auto& in) {
             return naive::Place{entry(in[1], p[0]), entry(in[2], p[0]), p[1]};
           }},
          {"positions that broadcast",
           {4, 3},
           {places({2, 1}, {0, 3}), places({3}, {2, 1, 0})},
           [](const auto& in) {
             return std::vector<TensorIndex>{in[1], in[2]};
           },
           {2, 3},
           [](const auto& p, const auto& in) {
             return naive::Place{entry(in[1], p[0]), entry(in[2], p[1])};
           }},
          {"a dim between",
           {3, 2, 4},
           {places({2}, {0, 2}), places({2}, {3, 1})},
           [](const auto& in) {
             return std::vector<TensorIndex>{in[1], Slice(), in[2]};
           },
           {2, 2},
           [](const auto& p, const auto& in) {
             return naive::Place{entry(in[1], p[0]), p[1], entry(in[2], p[0])};
           }},
          {"middle dims",
           {2, 3, 4, 2},
           {places({2}, {0, 2}), places({2}, {3, 1})},
           [](const auto& in) {
             return std::vector<TensorIndex>{Slice(), in[1], in[2]};
           },
           {2, 2, 2},
           [](const auto& p, const auto& in) {
             return naive::Place{p[0], entry(in[1], p[1]), entry(in[2], p[1]), p[2]};
           }},
          {"a position and a tensor",
           {2, 3, 4},
           {places({2}, {3, 0})},
           [](const auto& in) {
             return std::vector<TensorIndex>{1, Slice(), in[1]};
           },
           {3, 2},
           [](const auto& p, const auto& in) {
             return naive::Place{1, p[0], entry(in[1], p[1])};
           }},
          {"mask of rows",
           {3, 2},
           {mask({3}, {1, 0, 1})},
           [](const auto& in) { return std::vector<TensorIndex>{in[1]}; },
           {2, 2},
           [](const auto& p, const auto&) {
             return naive::Place{2 * p[0], p[1]};
           }},
          {"mask of elements",
           {2, 3},
           {mask({2, 3}, {1, 0, 0, 0, 1, 1})},
           [](const auto& in) { return std::vector<TensorIndex>{in[1]}; },
           {3},
           [](const auto& p, const auto&) {
             return p[0] == 0 ? naive::Place{0, 0} : naive::Place{1, p[0]};
           }},
          {"no position",
           {3, 2},
           {places({0}, {})},
           [](const auto& in) { return std::vector<TensorIndex>{in[1]}; },
           {0, 2},
           [](const auto& p, const auto&) { return p; }}};
}

OpSample read(const Example& e) {
  OpSample sample;
  sample.label = e.label;
  sample.inputs = {{e.x}};
  sample.inputs.insert(sample.inputs.end(), e.tensors.begin(), e.tensors.end());
  sample.forward = [e](const std::vector<Tensor>& in) { return index(in[0], e.indices(in)); };
  sample.reference = [e](const std::vector<Values>& in) {
    Values y(e.result);
    for (int64_t i = 0; i < y.shape.numel(); ++i)
      y[i] = in[0][naive::number_of(e.x, e.source(naive::place_of(y.shape, i), in))];
    return y;
  };
  return sample;
}

/// Writes the last input, of the result's shape or one that broadcasts to it, into x or into a copy of it.
OpSample written(const Example& e, bool accumulate, bool broadcast, bool in_place) {
  OpSample sample = read(e);
  if (accumulate) sample.label += ", added";
  if (broadcast) sample.label += ", a number";
  sample.inputs.push_back({broadcast ? Shape() : e.result});
  sample.forward = [e, accumulate, in_place](const std::vector<Tensor>& in) {
    return in_place ? index_put_(clone(in[0]), e.indices(in), in.back(), accumulate)
                    : index_put(in[0], e.indices(in), in.back(), accumulate);
  };
  sample.reference = [e, accumulate](const std::vector<Values>& in) {
    Values y = in[0];
    for (int64_t i = 0; i < e.result.numel(); ++i) {
      double& element = y[naive::number_of(e.x, e.source(naive::place_of(e.result, i), in))];
      element = (accumulate ? element : 0) + naive::value_at(in.back(), e.result, i);
    }
    return y;
  };
  // Of a position that is written twice the first value is lost, and yet has the gradient, as in PyTorch.
  sample.differentiable = accumulate || (sample.label != "rows by a tensor" && sample.label != "a matrix of positions" &&
                                         sample.label != "pairs of positions");
  sample.any_layout = e.tensors.empty() || e.tensors[0].dtype == DType::int64;  // another mask would pick another number
  return sample;
}

std::vector<OpSample> reads() {
  std::vector<OpSample> all;
  for (const Example& e : examples()) all.push_back(read(e));
  return all;
}

std::vector<OpSample> writes(bool in_place) {
  std::vector<OpSample> all;
  for (const Example& e : examples()) {
    all.push_back(written(e, false, false, in_place));
    all.push_back(written(e, true, false, in_place));
  }
  all.push_back(written(examples()[8], false, true, in_place));
  all.push_back(written(examples()[9], true, true, in_place));
  return all;
}

std::vector<OpSample> writes_in_place() {
  std::vector<OpSample> all = writes(true);
  all.push_back({"one number",
                 {{{2, 3}}},
                 [](const std::vector<Tensor>& in) {
                   return index_put_(clone(in[0]), {Ellipsis, 1}, -1);
                 },
                 [](const std::vector<Values>& in) {
                   Values y = in[0];
                   y[1] = y[4] = -1;
                   return y;
                 }});
  return all;
}

/// Each vector of nonzero_numpy of a matrix, and that of a number.
std::vector<OpSample> columns_of_places() {
  std::vector<OpSample> all;
  const auto add = [&](const char* label, InputSpec x, size_t column, const std::vector<double>& want) {
    all.push_back({label,
                   {std::move(x)},
                   [column](const std::vector<Tensor>& in) { return nonzero_numpy(in[0]).at(column); },
                   [want](const std::vector<Values>&) {
                     Values y(static_cast<int64_t>(want.size()));
                     y.data = want;
                     return y;
                   },
                   false});
  };
  const InputSpec matrix{.shape = {2, 3}, .values = {0, 2, 0, -1, 0, 3}};
  add("rows", matrix, 0, {0, 1, 1});
  add("columns", matrix, 1, {1, 0, 2});
  add("number", {.shape = {}, .values = {2}}, 0, {0});
  add("empty", {{0, 3}}, 1, {});
  return all;
}

const RegisterOpCases registered([] {
  return OpCases{
      {"index",
       reads(),
       {{"too many",
         [] {
           index(zeros({2, 3}), {0, 0, 0});
         },
         "index: 3 indices for a tensor of shape [2, 3]"},
        {"two Ellipses",
         [] {
           index(zeros({2, 3}), {Ellipsis, "..."});
         },
         "index: Ellipsis appears twice"},
        {"no dots",
         [] {
           index(zeros({2, 3}), {":"});
         },
         R"(index: ":" is no index (only "..." is))"},
        {"floating", [] { index(zeros({2}), {zeros({1})}); }, "index: an index must be int64, int32 or bool: got float32"},
        {"outside",
         [] {
           index(zeros({2}), {tensor({0, 2})});
         },
         "index: ", is_a<IndexError>},
        {"mask",
         [] {
           index(zeros({2, 3}), {Slice(), tensor({true, false})});
         },
         "index: a mask of shape [2] does not fit dim 1 of shape [2, 3]"},
        {"do not broadcast",
         [] {
           index(zeros({2, 3}), {tensor({0, 1}), tensor({0, 1, 2})});
         },
         "index: ", is_a<ShapeError>}}},
      {"index_put",
       writes(false),
       {{"larger values",
         [] {
           index_put(zeros({4}), {tensor({0, 1})}, zeros({3}));
         },
         "index_put: ", is_a<ShapeError>}}},
      {"index_put_",
       writes_in_place(),
       {{"larger values",
         [] {
           index_put_(zeros({4}), {tensor({0, 1})}, zeros({3}));
         },
         "index_put_: ", is_a<ShapeError>},
        {"leaf",
         [] {
           index_put_(zeros({4}).requires_grad_(), {tensor({0, 1})}, 1);
         },
         "index_put_: ", is_a<GradError>},
        {"overflow", [] { index_put_(zeros({4}, DType::int64), {0}, 1e30); }, "index_put_: ", is_a<DTypeError>}}},
      {"nonzero",
       {{"matrix",
         {{.shape = {2, 3}, .values = {0, 2, 0, -1, 0, 3}}},
         [](const std::vector<Tensor>& in) { return nonzero(in[0]); },
         [](const std::vector<Values>&) {
           Values y({3, 2});
           y.data = {0, 1, 1, 0, 1, 2};
           return y;
         },
         false},
        {"number",
         {{.shape = {}, .values = {2}}},
         [](const std::vector<Tensor>& in) { return nonzero(in[0]); },
         [](const std::vector<Values>&) {
           return Values({1, 0});
         },
         false},
        {"empty",
         {{{0, 3}}},
         [](const std::vector<Tensor>& in) { return nonzero(in[0]); },
         [](const std::vector<Values>&) {
           return Values({0, 2});
         },
         false}},
       {}},
      {"nonzero_numpy", columns_of_places(), {}},
  };
});

}  // namespace
}  // namespace onestep
