#include "autograd/ops/cases.h"
#include "autograd/ops/naive.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

/// Element [i, j] of the result is x's element offset + i strides[0] + j strides[1] in row-major order.
OpSample strided(const char* label, const Shape& shape, const Shape& result, const Shape& strides, int64_t offset) {
  return {.label = label,
          .inputs = {{shape}},
          .forward = [=](const std::vector<Tensor>& in) { return as_strided(in[0], result, strides, offset); },
          .reference =
              [=](const std::vector<Values>& in) {
                Values y(result);
                for (int64_t i = 0; i < result.numel(); ++i) {
                  int64_t left = i, place = offset;
                  for (int d = result.rank() - 1; d >= 0; left /= result[d], --d) place += left % result[d] * strides[d];
                  y[i] = in[0][place];
                }
                return y;
              },
          .any_layout = false};
}

const RegisterOpCases cases([]() -> OpCases {
  return {
      {"as_strided",
       {strided("transposed", {2, 3}, {3, 2}, {1, 3}, 0), strided("diagonal", {3, 3}, {3}, {4}, 0),
        strided("window", {10}, {2, 2}, {4, 2}, 1), strided("overlapping", {5}, {3, 3}, {1, 1}, 0),
        strided("repeated", {3}, {2, 3}, {0, 1}, 0), strided("number", {4}, {}, {}, 3),
        strided("empty", {0}, {0, 2}, {2, 1}, 0)},
       {refused(
            "beyond", [] { as_strided(zeros({4}), {3}, {2}); },
            "as_strided: shape [3], strides [2] and offset 0 reach beyond a storage of 4 elements"),
        refused(
            "lengths",
            [] {
              as_strided(zeros({4}), {2, 2}, {1});
            },
            "as_strided: shape [2, 2] and strides [1] differ in length"),
        refused(
            "negative", [] { as_strided(zeros({4}), {2}, {-1}, 3); }, "as_strided: strides cannot be negative: got [-1]")}}};
});

}  // namespace
}  // namespace onestep
