#include <cmath>

#include "autograd/ops/cases.h"
#include "autograd/ops_nn.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

OpSample sample(const char* label, const Shape& sizes, std::vector<InputSpec> near, const std::vector<double>& expected) {
  return {label, std::move(near), [=](const std::vector<Tensor>& in) { return pixel_indices(in, sizes); },
          [=](const std::vector<Values>& in) {
            Values y(Shape{in[0].shape[0], in[0].shape[1],
                           in[0].shape.numel() == 0 ? 4 : static_cast<int64_t>(expected.size()) / in[0].shape.numel()});
            y.data = expected;
            return y;
          },
          false};
}

InputSpec places(std::vector<double> values) {
  const auto half = static_cast<int64_t>(values.size()) / 2;
  return {.shape = {2, half}, .values = std::move(values)};
}

const RegisterOpCases registered([] {
  return OpCases{
      {"pixel_indices",
       {sample("one place a dim", {2, 3}, {places({0, 1, 2, 1}), places({2, -1, 0, kNan})}, {2, -1, -1, 9}),
        sample("two of a line", {4}, {places({0, 3}), places({1, 4})}, {0, 1, 7, -1}),
        sample("two a dim", {2, 3}, {places({0, -1}), places({1, 0}), places({1, 2}), places({2, 3})},
               {1, 2, 4, 5, -1, -1, 8, -1}),
        sample("none", {2, 3}, {{{0, 2}}, {{0, 2}}, {{0, 2}}, {{0, 2}}}, {})},
       {{"one dim too few",
         [] {
           pixel_indices({zeros({1, 1}), zeros({1, 1}), zeros({1, 1})}, {2, 3});
         },
         "pixel_indices: needs places [N, P], as many of each dim of [2, 3]"},
        {"shapes",
         [] {
           pixel_indices({zeros({1, 2}), zeros({1, 1})}, {2, 3});
         },
         "pixel_indices: places of shape [1, 1] beside [1, 2]"},
        {"dtype",
         [] {
           pixel_indices({zeros({1, 1}, DType::int64)}, {2});
         },
         "pixel_indices: ", is_a<DTypeError>}}},
  };
});

}  // namespace
}  // namespace onestep
