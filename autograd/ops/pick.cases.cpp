#include <utility>

#include "autograd/ops/cases.h"
#include "autograd/ops/naive.h"
#include "autograd/ops_index.h"

namespace onestep {
namespace {

OpSample taken(const char* label, const Shape& shape, const InputSpec& index) {
  return {label,
          {{shape}, index},
          [](const std::vector<Tensor>& in) { return take(in[0], in[1]); },
          [](const std::vector<Values>& in) {
            return naive::map(in[1], [&](double i) {
              return in[0].data.at(static_cast<size_t>(i < 0 ? i + static_cast<double>(in[0].data.size()) : i));
            });
          }};
}

OpSample taken_along(const char* label, const Shape& shape, const InputSpec& index, int dim) {
  return {label,
          {{shape}, index},
          [dim](const std::vector<Tensor>& in) { return take_along_dim(in[0], in[1], dim); },
          [dim](const std::vector<Values>& in) {
            const Values &x = in[0], &given = in[1];
            const auto d = static_cast<size_t>(dim < 0 ? dim + std::max(x.shape.rank(), 1) : dim);
            Shape result = naive::broadcast(x.shape, given.shape);
            if (!result.empty()) result[static_cast<int>(d)] = given.shape[static_cast<int>(d)];
            Values y(result);
            for (int64_t i = 0; i < result.numel(); ++i) {
              const naive::Place at = naive::place_of(result, i);
              naive::Place of_index = at, of_x = at;
              for (int k = 0; k < result.rank(); ++k) {
                const auto p = static_cast<size_t>(k);
                if (given.shape[k] == 1) of_index[p] = 0;
                if (x.shape[k] == 1) of_x[p] = 0;
              }
              const auto position = static_cast<int64_t>(given[naive::number_of(given.shape, of_index)]);
              of_x[d] = position < 0 ? position + x.shape[static_cast<int>(d)] : position;
              y[i] = x[naive::number_of(x.shape, of_x)];
            }
            return y;
          }};
}

const RegisterOpCases registered([] {
  OpSample flat = taken("of the flattened tensor", {2, 3}, places({4}, {5, 0, 2, 2}));
  flat.forward = [](const std::vector<Tensor>& in) { return take_along_dim(in[0], in[1]); };
  return OpCases{{"take",
                  {taken("some", {3, 4}, places({2, 3}, {0, 11, 5, 5, -1, -12})), taken("one", {3, 4}, places({}, {7})),
                   taken("of a number", {}, places({2}, {0, -1})), taken("none", {2, 3}, places({0, 2}, {})),
                   taken("none of nothing", {0, 3}, places({0}, {}))},
                  {{"position above",
                    [] {
                      take(zeros({2, 3}), tensor({6}));
                    },
                    "take: ", is_a<IndexError>},
                   {"position below",
                    [] {
                      take(zeros({2, 3}), tensor({-7}));
                    },
                    "take: index -7 is out of range for dim 0 of shape [6]", is_a<IndexError>},
                   {"of nothing", [] { take(zeros(0), tensor({0})); }, "take: ", is_a<IndexError>},
                   {"index dtype", [] { take(zeros(2), tensor({0.0})); }, "take: ", is_a<DTypeError>}}},
                 {"take_along_dim",
                  {taken_along("as gather", {2, 3}, places({2, 2}, {2, 0, -3, 1}), 1),
                   taken_along("index of one row", {3, 4}, places({1, 2}, {3, 3}), -1),
                   taken_along("tensor of one row", {1, 4}, places({3, 2}, {0, 1, 2, 3, 0, 0}), 1),
                   taken_along("first of three", {3, 1, 2}, places({2, 2, 1}, {2, 1, 0, -1}), 0), flat,
                   taken_along("a number", {}, places({}, {0}), 0), taken_along("nothing", {3, 4}, places({3, 0}, {}), 1)},
                  {{"position above",
                    [] {
                      take_along_dim(zeros({2, 3}), tensor({{3}}), 1);
                    },
                    "take_along_dim: ", is_a<IndexError>},
                   {"ranks",
                    [] {
                      take_along_dim(zeros({2, 3}), tensor({0}), 1);
                    },
                    "take_along_dim: index of shape [1] for a tensor of shape [2, 3] (both need the same number of dims)"},
                   {"sizes",
                    [] {
                      take_along_dim(zeros({2, 3}), zeros({3, 1}, DType::int64), 1);
                    },
                    "take_along_dim: ", is_a<ShapeError>}}}};
});

}  // namespace
}  // namespace onestep
