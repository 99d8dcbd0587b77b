#include <algorithm>
#include <cmath>

#include "autograd/ops/shape_cases.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using namespace shapes;

OpSample diagonal_of(const char* label, const Shape& shape, int64_t offset, int dim1, int dim2, const Shape& result) {
  return rearranged(
      label, shape, result, [=](const Tensor& x) { return diagonal(x, offset, dim1, dim2); },
      [=](const Place& place) {
        Place from{};
        const int64_t i = place[static_cast<size_t>(result.rank() - 1)];
        for (int d = 0, next = 0; d < shape.rank(); ++d) {
          const int64_t down = std::max<int64_t>(-offset, 0), right = std::max<int64_t>(offset, 0);
          from[static_cast<size_t>(d)] = d == dim1 ? i + down : d == dim2 ? i + right : place[static_cast<size_t>(next++)];
        }
        return from;
      });
}

template <class Op>
OpSample embedded(const char* label, const Shape& shape, int64_t offset, int dim1, int dim2, const Shape& result, Op op) {
  return {label,
          {{shape}},
          [op](const std::vector<Tensor>& in) { return op(in[0]); },
          [=](const std::vector<Values>& in) {
            Values y(result);
            for (int64_t i = 0; i < in[0].shape.numel(); ++i) {
              const Place place = naive::place_of(in[0].shape, i);
              const int64_t along = place[static_cast<size_t>(shape.rank() - 1)];
              Place to{};
              for (int d = 0, next = 0; d < result.rank(); ++d)
                to[static_cast<size_t>(d)] = d == dim1   ? along + std::max<int64_t>(-offset, 0)
                                             : d == dim2 ? along + std::max<int64_t>(offset, 0)
                                                         : place[static_cast<size_t>(next++)];
              y[naive::number_of(result, to)] = in[0][i];
            }
            return y;
          }};
}
OpSample embedded(const char* label, const Shape& shape, int64_t offset, int dim1, int dim2, const Shape& result) {
  return embedded(label, shape, offset, dim1, dim2, result, [=](const Tensor& x) { return diag_embed(x, offset, dim1, dim2); });
}

OpSample windows(const char* label, const Shape& shape, int d, int64_t size, int64_t step, const Shape& result) {
  return rearranged(
      label, shape, result, [=](const Tensor& x) { return unfold(x, d, size, step); },
      [=](Place place) {
        const int64_t within = std::exchange(place[static_cast<size_t>(result.rank() - 1)], 0);
        place[static_cast<size_t>(d)] = place[static_cast<size_t>(d)] * step + within;
        return place;
      });
}

Tensor x23() { return zeros({2, 3}); }

const RegisterOpCases registered([] {
  const auto of_matrix = [](int64_t offset) { return [offset](const Tensor& x) { return diag(x, offset); }; };
  return OpCases{
      {"diagonal",
       {diagonal_of("square", {3, 3}, 0, 0, 1, {3}), diagonal_of("wide", {3, 5}, 1, 0, 1, {3}),
        diagonal_of("below", {4, 3}, -2, 0, 1, {2}), diagonal_of("outside", {3, 3}, 4, 0, 1, {0}),
        diagonal_of("batch", {2, 3, 4}, 0, 1, 2, {2, 3}), diagonal_of("other dims", {3, 2, 4}, 1, 2, 0, {2, 2}),
        diagonal_of("empty", {0, 3}, 0, 0, 1, {0}), diagonal_of("rank 6", {2, 3, 1, 2, 3, 2}, 0, 1, 4, {2, 1, 2, 2, 3})},
       {refused(
            "vector", [] { diagonal(zeros({3})); }, "diagonal: ", is_a<IndexError>),
        refused(
            "one dim", [] { diagonal(x23(), 0, 1, -1); },
            "diagonal: needs two different dims: got 1 and -1 for a tensor of rank 2")}},
      {"diag_embed",
       {embedded("vector", {3}, 0, 0, 1, {3, 3}), embedded("above", {2, 3}, 2, 1, 2, {2, 5, 5}),
        embedded("below", {3}, -1, 0, 1, {4, 4}), embedded("other dims", {2, 3}, 1, 2, 0, {4, 2, 4}),
        embedded("empty", {2, 0}, 0, 1, 2, {2, 0, 0}),
        embedded("last dims", {2, 3}, 0, 1, 2, {2, 3, 3}, [](const Tensor& x) { return diag_embed(x); })},
       {refused(
            "number", [] { diag_embed(zeros({})); }, "diag_embed: a rank-0 tensor has no diagonal"),
        refused(
            "one dim", [] { diag_embed(x23(), 0, 1, 1); }, "diag_embed: ", is_a<ShapeError>)}},
      {"diag",
       {embedded("vector", {3}, 1, 0, 1, {4, 4}, of_matrix(1)), embedded("empty", {0}, 0, 0, 1, {0, 0}, of_matrix(0)),
        rearranged("matrix", {3, 4}, {3}, of_matrix(1),
                   [](const Place& place) {
                     return Place{place[0], place[0] + 1};
                   }),
        rearranged("below", {3, 4}, {2}, of_matrix(-1),
                   [](const Place& place) {
                     return Place{place[0] + 1, place[0]};
                   })},
       {refused(
           "rank",
           [] {
             diag(zeros({2, 2, 2}));
           },
           "diag: needs a vector or a matrix: got shape [2, 2, 2]")}},
      {"unfold",
       {windows("overlapping", {2, 7}, 1, 3, 2, {2, 3, 3}), windows("apart", {7, 2}, 0, 2, 3, {2, 2, 2}),
        windows("all", {4}, 0, 4, 1, {1, 4}), windows("size 0", {4}, 0, 0, 2, {3, 0}),
        windows("empty", {0, 5}, 1, 2, 1, {0, 4, 2}),
        rearranged(
            "number", {}, {1}, [](const Tensor& x) { return unfold(x, 0, 1, 1); }, same),
        windows("rank 5", {2, 1, 5, 1, 2}, 2, 2, 2, {2, 1, 2, 1, 2, 2})},
       {refused(
            "size", [] { unfold(x23(), 1, 4, 1); }, "unfold: windows of 4 places, 1 apart, in dim 1 of shape [2, 3]"),
        refused(
            "step", [] { unfold(x23(), 1, 2, 0); }, "unfold: windows of 2 places, 0 apart, in dim 1 of shape [2, 3]")}},
  };
});

}  // namespace
}  // namespace onestep
