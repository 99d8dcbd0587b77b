#include "autograd/ops/cases.h"
#include "autograd/ops_index.h"
#include "autograd/ops_nn.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

Values rows_of(const std::vector<Values>& in) {
  const Values &index = in[0], &weight = in[1];
  const int64_t d = weight.shape[1];
  Shape shape = index.shape;
  shape.push_back(d);
  Values y(shape);
  for (int64_t i = 0; i < index.shape.numel(); ++i)
    for (int64_t c = 0; c < d; ++c) y[i * d + c] = weight[static_cast<int64_t>(index[i]) * d + c];
  return y;
}

OpSample picked(const std::string& label, const Shape& shape, std::vector<double> index, const Shape& weight) {
  return {label,
          {places(shape, std::move(index)), {weight}},
          [](const std::vector<Tensor>& in) { return embedding(in[0], in[1]); },
          rows_of};
}

/// The index does not name the padding row: finite differences would see the gradient that padding_idx leaves out
/// (tests/autograd/reference_goldens_test.cpp looks at that).
OpSample padded(int64_t padding_idx) {
  return {"padding_idx " + std::to_string(padding_idx),
          {places({2, 2}, {0, 4, 0, 1}), {{5, 3}}},
          [padding_idx](const std::vector<Tensor>& in) { return embedding(in[0], in[1], padding_idx); },
          rows_of};
}

const RegisterOpCases registered([] {
  return OpCases{{"embedding",
                  {picked("repeated rows", {2, 3}, {0, 2, 2, 4, 0, 2}, {5, 3}), picked("one row", {}, {3}, {5, 3}),
                   picked("wide rows", {4}, {1, 0, 1, 1}, {2, 70}), picked("rank 6", {1, 2, 1, 2, 1}, {0, 1, 1, 2}, {3, 2}),
                   picked("no index", {2, 0}, {}, {5, 3}), picked("no index into nothing", {0}, {}, {0, 3}),
                   picked("empty rows", {2}, {1, 0}, {3, 0}), padded(2), padded(-3)},
                  {{"index above",
                    [] {
                      embedding(tensor({{1, 5}}), zeros({5, 3}));
                    },
                    "embedding: ", is_a<IndexError>},
                   {"negative index",
                    [] {
                      embedding(tensor({-1}), zeros({5, 3}));
                    },
                    "embedding: ", is_a<IndexError>},
                   {"index dtype",
                    [] {
                      embedding(zeros(2), zeros({5, 3}));
                    },
                    "embedding: ", is_a<DTypeError>},
                   {"weight rank", [] { embedding(tensor({1}), zeros(5)); }, "embedding: weight must be [V, d]: got [5]"},
                   {"padding_idx",
                    [] {
                      embedding(tensor({1}), zeros({5, 3}), 5);
                    },
                    "embedding: padding_idx 5 is out of range for weight [5, 3]"}}}};
});

}  // namespace
}  // namespace onestep
