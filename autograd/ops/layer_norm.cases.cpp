#include <cmath>

#include "autograd/ops_nn.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

/// Rows of `cols` elements, weight and bias when there are inputs for them.
auto normalized(int64_t cols, double eps, bool has_weight, bool has_bias) {
  return [=](const std::vector<Values>& in) {
    const Values& x = in[0];
    Values y(x.shape);
    for (int64_t r = 0; cols > 0 && r < x.shape.numel() / cols; ++r) {
      double mean = 0, variance = 0;
      for (int64_t c = 0; c < cols; ++c) mean += x[r * cols + c] / static_cast<double>(cols);
      for (int64_t c = 0; c < cols; ++c) variance += std::pow(x[r * cols + c] - mean, 2) / static_cast<double>(cols);
      for (int64_t c = 0; c < cols; ++c) {
        const double h = (x[r * cols + c] - mean) / std::sqrt(variance + eps);
        y[r * cols + c] = (has_weight ? h * in[1][c] : h) + (has_bias ? in[has_weight ? 2 : 1][c] : 0);
      }
    }
    return y;
  };
}

OpSample affine(const std::string& label, const Shape& shape, const Shape& last) {
  return {label,
          {{shape}, {last}, {last}},
          [last](const std::vector<Tensor>& in) { return layer_norm(in[0], last, in[1], in[2]); },
          normalized(last.numel(), 1e-5, true, true)};
}

const RegisterOpCases registered([] {
  return OpCases{{"layer_norm",
                  {affine("last dim", {2, 3, 4}, 4),
                   affine("last two dims", {2, 2, 3}, {2, 3}),
                   affine("a long row", {2, 67}, 67),
                   affine("rank 6", {1, 2, 1, 2, 1, 3}, {1, 3}),
                   affine("no rows", {0, 3}, 3),
                   affine("empty rows", {3, 0}, 0),
                   {"without weight and bias",
                    {{{3, 5}}},
                    [](const std::vector<Tensor>& in) { return layer_norm(in[0], 5); },
                    normalized(5, 1e-5, false, false)},
                   {"weight alone and a large eps",
                    {{{3, 5}}, {5}},
                    [](const std::vector<Tensor>& in) { return layer_norm(in[0], 5, in[1], {}, 0.5); },
                    normalized(5, 0.5, true, false)},
                   {"bias alone",
                    {{{3, 5}}, {5}},
                    [](const std::vector<Tensor>& in) { return layer_norm(in[0], 5, {}, in[1]); },
                    normalized(5, 1e-5, false, true)}},
                  {{"normalized_shape",
                    [] {
                      layer_norm(zeros({2, 3}), 2);
                    },
                    "layer_norm: normalized_shape [2] is not the end of shape [2, 3]"},
                   {"normalized_shape without dims",
                    [] {
                      layer_norm(zeros({2, 3}), Shape());
                    },
                    "layer_norm: ", is_a<ShapeError>},
                   {"weight shape",
                    [] {
                      layer_norm(zeros({2, 3}), 3, zeros(2));
                    },
                    "layer_norm: weight of shape [2] for normalized_shape [3]"},
                   {"bias shape",
                    [] {
                      layer_norm(zeros({2, 3}), 3, zeros(3), zeros({1, 3}));
                    },
                    "layer_norm: bias of shape [1, 3] for normalized_shape [3]"},
                   {"integers",
                    [] {
                      layer_norm(zeros({2, 3}, DType::int64), 3);
                    },
                    "layer_norm: ", is_a<DTypeError>}}}};
});

}  // namespace
}  // namespace onestep
