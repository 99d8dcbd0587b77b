#include <vector>

#include "autograd/ops/shape_cases.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using namespace shapes;

/// Several tensors joined: element `i` of the result is element `place` of input `which`.
struct From {
  size_t which;
  Place place;
};
std::vector<InputSpec> specs(const std::vector<Shape>& shapes) {
  std::vector<InputSpec> inputs(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) inputs[i].shape = shapes[i];
  return inputs;
}

template <class Op, class F>
OpSample joined_up(const char* label, const std::vector<Shape>& shapes, const Shape& result, Op op, F from) {
  const std::vector<InputSpec> inputs = specs(shapes);
  return {label, inputs, [op](const std::vector<Tensor>& in) { return op(in); },
          [=](const std::vector<Values>& in) {
            Values y(result);
            for (int64_t i = 0; i < result.numel(); ++i) {
              const From f = from(naive::place_of(result, i));
              y[i] = in[f.which][naive::number_of(in[f.which].shape, f.place)];
            }
            return y;
          }};
}

/// Joined along dim `d` of tensors that are seen as `shapes`.
template <class Op>
OpSample stacked(const char* label, const std::vector<Shape>& given, const std::vector<Shape>& shapes, size_t d, Op op) {
  Shape result = shapes[0];
  for (size_t i = 1; i < shapes.size(); ++i) result[static_cast<int>(d)] += shapes[i][static_cast<int>(d)];
  const std::vector<InputSpec> inputs = specs(given);
  return {label, inputs, [op](const std::vector<Tensor>& in) { return op(in); },
          [=](const std::vector<Values>& in) {
            Values y(result);
            for (int64_t i = 0; i < result.numel(); ++i) {
              Place place = naive::place_of(result, i);
              size_t which = 0;
              for (; place[d] >= shapes[which][static_cast<int>(d)]; ++which) place[d] -= shapes[which][static_cast<int>(d)];
              y[i] = in[which][naive::number_of(shapes[which], place)];
            }
            return y;
          }};
}

OpSample grid(const char* label, const std::vector<Shape>& shapes, const Shape& result, size_t which, size_t dim,
              GridIndexing indexing) {
  return joined_up(
      label, shapes, result, [=](const std::vector<Tensor>& in) { return meshgrid(in, indexing)[which]; },
      [=](const Place& place) {
        Place from{};
        if (!shapes[which].empty()) from[0] = place[dim];
        return From{which, from};
      });
}

const RegisterOpCases registered([] {
  const auto ij = GridIndexing::ij, xy = GridIndexing::xy;
  return OpCases{
      {"meshgrid",
       {grid("rows", {{2}, {3}}, {2, 3}, 0, 0, ij), grid("columns", {{2}, {3}}, {2, 3}, 1, 1, ij),
        grid("swapped rows", {{2}, {3}}, {3, 2}, 0, 1, xy), grid("swapped columns", {{2}, {3}, {4}}, {3, 2, 4}, 1, 0, xy),
        grid("third", {{2}, {}, {4}}, {2, 1, 4}, 2, 2, ij), grid("empty", {{0}, {3}}, {0, 3}, 1, 1, ij)},
       {refused(
            "matrix",
            [] {
              meshgrid({zeros({2, 3})});
            },
            "meshgrid: needs vectors: got shape [2, 3]"),
        refused(
            "nothing", [] { meshgrid(std::vector<Tensor>{}); }, "meshgrid: needs at least one tensor")}},
      {"hstack",
       {stacked("vectors", {{2}, {3}}, {{2}, {3}}, 0, [](const std::vector<Tensor>& in) { return hstack(in); }),
        stacked("matrices", {{2, 1}, {2, 3}}, {{2, 1}, {2, 3}}, 1, [](const std::vector<Tensor>& in) { return hstack(in); }),
        stacked("numbers", {{}, {}}, {{1}, {1}}, 0, [](const std::vector<Tensor>& in) { return hstack(in); }),
        stacked("empty", {{0}, {0}}, {{0}, {0}}, 0, [](const std::vector<Tensor>& in) { return hstack(in); })},
       {}},
      {"vstack",
       {stacked("vectors", {{3}, {3}}, {{1, 3}, {1, 3}}, 0, [](const std::vector<Tensor>& in) { return vstack(in); }),
        stacked("matrices", {{1, 3}, {2, 3}}, {{1, 3}, {2, 3}}, 0, [](const std::vector<Tensor>& in) { return vstack(in); }),
        stacked("empty", {{0, 3}, {2, 3}}, {{0, 3}, {2, 3}}, 0, [](const std::vector<Tensor>& in) { return vstack(in); })},
       {}},
      {"dstack",
       {stacked("vectors", {{3}, {3}}, {{1, 3, 1}, {1, 3, 1}}, 2, [](const std::vector<Tensor>& in) { return dstack(in); }),
        stacked("matrices", {{2, 3}, {2, 3}}, {{2, 3, 1}, {2, 3, 1}}, 2,
                [](const std::vector<Tensor>& in) { return dstack(in); }),
        stacked("empty", {{0, 3}, {0, 3}}, {{0, 3, 1}, {0, 3, 1}}, 2,
                [](const std::vector<Tensor>& in) { return dstack(in); })},
       {}},
      {"column_stack",
       {stacked("vectors", {{3}, {3}}, {{3, 1}, {3, 1}}, 1, [](const std::vector<Tensor>& in) { return column_stack(in); }),
        stacked("mixed", {{2}, {2, 3}}, {{2, 1}, {2, 3}}, 1, [](const std::vector<Tensor>& in) { return column_stack(in); }),
        stacked("empty", {{0}, {0, 2}}, {{0, 1}, {0, 2}}, 1, [](const std::vector<Tensor>& in) { return column_stack(in); })},
       {}},
  };
});

}  // namespace
}  // namespace onestep
