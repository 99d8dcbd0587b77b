#include <utility>

#include "autograd/ops/cases.h"
#include "autograd/ops_index.h"
#include "autograd/ops_shape.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

/// Row-major [outer, size, inner] around a dim.
struct Around {
  Around(const Shape& shape, int dim) {
    for (int i = 0; i < shape.rank(); ++i) (i < dim ? outer : i > dim ? inner : size) *= shape[i];
  }
  int64_t outer = 1, size = 1, inner = 1;
};

OpSample selected(const std::string& label, const Shape& shape, int dim, std::vector<double> index) {
  const auto count = static_cast<int64_t>(index.size());
  return {label,
          {{shape}, places(count, std::move(index))},
          [dim](const std::vector<Tensor>& in) { return index_select(in[0], dim, in[1]); },
          [dim, count](const std::vector<Values>& in) {
            const Around x(in[0].shape, dim);
            Shape out = in[0].shape;
            if (!out.empty()) out[dim] = count;
            Values y(out);
            for (int64_t o = 0; o < x.outer; ++o)
              for (int64_t i = 0; i < count; ++i)
                for (int64_t c = 0; c < x.inner; ++c)
                  y[(o * count + i) * x.inner + c] = in[0][(o * x.size + static_cast<int64_t>(in[1][i])) * x.inner + c];
            return y;
          }};
}

/// x and index of rank 2 (or 0 and 1, by leading size-1 dims).
OpSample gathered(const std::string& label, const Shape& shape, int dim, const Shape& index, std::vector<double> values) {
  return {label,
          {{shape}, places(index, std::move(values))},
          [dim](const std::vector<Tensor>& in) { return gather(in[0], dim, in[1]); },
          [dim](const std::vector<Values>& in) {
            Values y(in[1].shape);
            const int rank = in[1].shape.rank();
            const int64_t cols = rank > 1 ? in[1].shape[1] : 1, x_cols = rank > 1 ? in[0].shape[1] : 1;
            for (int64_t i = 0; i < y.shape.numel(); ++i) {
              const int64_t r = i / cols, c = i % cols, picked = static_cast<int64_t>(in[1][i]);
              y[i] = dim == 0 ? in[0][picked * x_cols + c] : in[0][r * x_cols + picked];
            }
            return y;
          }};
}

Values joined(const std::vector<Values>& in, int dim) {
  Shape shape = in[0].shape;
  shape[dim] = 0;
  for (const Values& x : in) shape[dim] += x.shape[dim];
  Values y(shape);
  const Around whole(shape, dim);
  int64_t start = 0;
  for (const Values& x : in) {
    const Around part(x.shape, dim);
    for (int64_t o = 0; o < part.outer; ++o)
      for (int64_t i = 0; i < part.size * part.inner; ++i)
        y[(o * whole.size + start) * whole.inner + i] = x[o * part.size * part.inner + i];
    start += part.size;
  }
  return y;
}

OpSample cat_sample(const std::string& label, std::vector<InputSpec> inputs, int dim) {
  return {label, std::move(inputs), [dim](const std::vector<Tensor>& in) { return cat(in, dim); },
          [dim](const std::vector<Values>& in) { return joined(in, dim < 0 ? dim + in[0].shape.rank() : dim); }};
}

OpSample stack_sample(const std::string& label, std::vector<InputSpec> inputs, int dim) {
  return {label, std::move(inputs), [dim](const std::vector<Tensor>& in) { return stack(in, dim); },
          [dim](std::vector<Values> in) {
            const int d = dim < 0 ? dim + in[0].shape.rank() + 1 : dim;
            for (Values& x : in) x.shape.insert(d, 1);
            return joined(in, d);
          }};
}

const RegisterOpCases registered([] {
  return OpCases{{"index_select",
                  {selected("rows", {4, 3}, 0, {2, 0, 2}),
                   selected("columns", {2, 5}, 1, {4, 4, 0, 1}),
                   selected("columns of many rows", {6, 3}, 1, {2, 0, 0, 1, 2}),
                   selected("middle dim", {2, 3, 4}, 1, {1, 2}),
                   selected("wide rows", {3, 70}, 0, {1, 1}),
                   selected("a number", {}, 0, {0}),
                   selected("no index", {2, 3}, 1, {}),
                   selected("no rows", {0, 3}, 1, {2, 1}),
                   {"one index without a dim",
                    {{{2, 3}}, places({}, {1})},
                    [](const std::vector<Tensor>& in) { return index_select(in[0], 1, in[1]); },
                    [](const std::vector<Values>& in) {
                      Values y({2, 1});
                      y.data = {in[0][1], in[0][4]};
                      return y;
                    }}},
                  {{"index above",
                    [] {
                      index_select(zeros({2, 3}), 1, tensor({0, 3}));
                    },
                    "index_select: index 3 is out of range for dim 1 of shape [2, 3]"},
                   {"negative index",
                    [] {
                      index_select(zeros({2, 3}), 0, tensor({-1}));
                    },
                    "index_select: ", is_a<IndexError>},
                   {"index rank",
                    [] {
                      index_select(zeros({2, 3}), 0, tensor({{0, 1}}));
                    },
                    "index_select: the index must be a vector: got shape [1, 2]"},
                   {"index dtype",
                    [] {
                      index_select(zeros({2, 3}), 0, zeros(1));
                    },
                    "index_select: the index must be int64 or int32: got float32"},
                   {"dim",
                    [] {
                      index_select(zeros({2, 3}), 2, tensor({0}));
                    },
                    "index_select: ", is_a<IndexError>},
                   {"two places of a number",
                    [] {
                      index_select(zeros({}), 0, tensor({0, 0}));
                    },
                    "index_select: a rank-0 tensor takes one index: got 2"}}},
                 {"gather",
                  {gathered("along columns", {3, 4}, 1, {3, 2}, {0, 3, 1, 1, 2, 0}),
                   gathered("along rows", {3, 4}, 0, {2, 4}, {0, 1, 2, 0, 0, 1, 2, 2}),
                   gathered("fewer rows than the tensor", {3, 4}, 1, {2, 5}, {0, 0, 0, 1, 2, 3, 3, 2, 1, 1}),
                   gathered("one column", {3, 4}, 1, {3, 1}, {3, 0, 1}), gathered("a vector", {5}, 0, {3}, {4, 4, 0}),
                   gathered("a number", {}, 0, {}, {0}), gathered("no index", {3, 4}, 1, {3, 0}, {})},
                  {{"index above",
                    [] {
                      gather(zeros({2, 3}), 1, tensor({{0}, {3}}));
                    },
                    "gather: ", is_a<IndexError>},
                   {"index rank",
                    [] {
                      gather(zeros({2, 3}), 1, tensor({0}));
                    },
                    "gather: index of shape [1] for a tensor of shape [2, 3] (both need the same number of dims)"},
                   {"index size",
                    [] {
                      gather(zeros({2, 3}), 1, zeros({3, 1}, DType::int64));
                    },
                    "gather: index of shape [3, 1] is larger than the tensor of shape [2, 3] at dim 0"},
                   {"index dtype",
                    [] {
                      gather(zeros({2, 3}), 1, zeros({2, 1}));
                    },
                    "gather: ", is_a<DTypeError>}}},
                 {"cat",
                  {cat_sample("along dim 1", {{{2, 2}}, {{2, 3}}}, 1),
                   cat_sample("three along the last dim", {{{2, 2, 1}}, {{2, 2, 2}}, {{2, 2, 1}}}, -1),
                   cat_sample("one", {{{2, 3}}}, 0),
                   cat_sample("an empty part", {{{2, 3}}, {{0, 3}}, {{1, 3}}}, 0),
                   cat_sample("nothing at all", {{{2, 0}}, {{3, 0}}}, 0),
                   {"a vector without elements joins anything",
                    {{0}, {{2, 3}}},
                    [](const std::vector<Tensor>& in) { return cat(in, 1); },
                    [](const std::vector<Values>& in) { return in[1]; }},
                   {.label = "the widest dtype wins",
                    .inputs = {{{2}}, places(3, {1, 2, 3})},
                    .forward = [](const std::vector<Tensor>& in) { return cat(in, 0); },
                    .reference = [](const std::vector<Values>& in) { return joined(in, 0); }}},
                  {{"nothing", [] { cat(std::vector<Tensor>(), 0); }, "cat: needs at least one tensor"},
                   {"sizes",
                    [] {
                      cat({zeros({2, 3}), zeros({3, 4})}, 0);
                    },
                    "cat: shape [3, 4] does not join [2, 3] along dim 0 (all other sizes must be equal)"},
                   {"ranks",
                    [] {
                      cat({zeros({2, 3}), zeros(3)}, 1);
                    },
                    "cat: shape [3] does not join [2, 3] along dim 1 (all other sizes must be equal)"},
                   {"numbers",
                    [] {
                      cat({zeros({}), zeros({})}, 0);
                    },
                    "cat: a rank-0 tensor cannot be joined (use stack)"},
                   {"dim",
                    [] {
                      cat({zeros({2, 3})}, 2);
                    },
                    "cat: ", is_a<IndexError>}}},
                 {"stack",
                  {stack_sample("in front", {{{2, 3}}, {{2, 3}}}, 0), stack_sample("behind", {{{2, 3}}, {{2, 3}}}, -1),
                   stack_sample("numbers", {{{}}, {{}}, {{}}}, 0), stack_sample("empty parts", {{{0, 3}}, {{0, 3}}}, 1),
                   stack_sample("to rank 6", {{{1, 2, 1, 2, 1}}, {{1, 2, 1, 2, 1}}}, 2)},
                  {{"nothing", [] { stack(std::vector<Tensor>(), 0); }, "stack: needs at least one tensor"},
                   {"shapes",
                    [] {
                      stack({zeros({2, 3}), zeros({3, 2})});
                    },
                    "stack: shapes differ: [2, 3] and [3, 2]"},
                   {"dim",
                    [] {
                      stack({zeros({2, 3})}, 3);
                    },
                    "stack: ", is_a<IndexError>},
                   {"rank 9",
                    [] {
                      stack({zeros({1, 1, 1, 1, 1, 1, 1, 1})});
                    },
                    "shape: ", is_a<ShapeError>}}}};
});

}  // namespace
}  // namespace onestep
