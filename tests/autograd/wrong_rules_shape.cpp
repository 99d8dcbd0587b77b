// Wrong rules of matrix products, layers and ops that move elements.
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/wrong_rules.h"

namespace onestep::testing {
namespace {

using In = std::vector<Tensor>;

const std::vector<InputSpec> kSquare{{{3, 3}}}, kTwoSquares{{{3, 3}}, {{3, 3}}};

enum class LayerNormMistake { none, mean_term, variance_term, weight };

/// The textbook rule with one term left out.
Tensor normalized(const In& in, LayerNormMistake mistake) {
  const Tensor x = in[0].detach(), rstd = rsqrt(var(x, -1, 0, true) + 1e-5), h = (x - mean(x, -1, true)) * rstd;
  return record("layer_norm", layer_norm(x, 4, in[1].detach()), {in[0], in[1]}, {x, h, rstd, in[1]},
                [mistake](const Backward& b) -> Grads {
                  const Tensor &unit = b.saved(1), g = b.grad() * b.saved(3);
                  Tensor dx = g;
                  if (mistake != LayerNormMistake::mean_term) dx = dx - mean(g, -1, true);
                  if (mistake != LayerNormMistake::variance_term) dx = dx - unit * mean(g * unit, -1, true);
                  return {dx * b.saved(2), sum(b.grad() * (mistake == LayerNormMistake::weight ? b.saved(0) : unit), 0)};
                });
}

WrongRule layer_norm_without(const char* what, LayerNormMistake mistake) {
  return {what, "gradcheck", {{{3, 4}}, {{4}}}, [mistake](const In& in, bool wrong) {
            return normalized(in, wrong ? mistake : LayerNormMistake::none);
          }};
}

/// Rows of x by an index with a repeated entry.
WrongRule picked_rows(const char* what, bool forgets_last) {
  return {what, "gradcheck", {{{4, 2}}}, [=](const In& in, bool wrong) {
            const Tensor index = tensor({2, 0, 2});
            return record("pick", index_select(in[0].detach(), 0, index), {in[0]}, {}, [=](const Backward& b) -> Grads {
              Tensor dx = zeros({4, 2}, b.grad().dtype());
              const int64_t rows[] = {2, 0, 2};
              for (int64_t i = 0; i < (wrong && forgets_last ? 2 : 3); ++i) {
                Tensor row = select(dx, 0, rows[i]);
                if (wrong && !forgets_last)
                  copy_(row, select(b.grad(), 0, i));
                else
                  add_(row, select(b.grad(), 0, i));
              }
              return {dx};
            });
          }};
}

}  // namespace

std::vector<WrongRule> wrong_matrix_rules() {
  const std::vector<InputSpec> attention{{{2, 3, 4}}, {{2, 3, 4}}, {{2, 3, 4}}};
  return {
      {"matmul: the right side is not transposed", "gradcheck", kTwoSquares,
       [](const In& in, bool wrong) {
         return record("matmul", matmul(in[0].detach(), in[1].detach()), {in[0], in[1]}, {in[0], in[1]},
                       [wrong](const Backward& b) -> Grads {
                         return {matmul(b.grad(), wrong ? b.saved(1) : t(b.saved(1))), matmul(t(b.saved(0)), b.grad())};
                       });
       }},
      {"matmul: the second gradient's factors are swapped", "gradcheck", kTwoSquares,
       [](const In& in, bool wrong) {
         return record("matmul", matmul(in[0].detach(), in[1].detach()), {in[0], in[1]}, {in[0], in[1]},
                       [wrong](const Backward& b) -> Grads {
                         const Tensor at = t(b.saved(0));
                         return {matmul(b.grad(), t(b.saved(1))), wrong ? matmul(b.grad(), at) : matmul(at, b.grad())};
                       });
       }},
      {"linear: the bias gets one row instead of their sum",
       "gradcheck",
       {{{3, 2}}, {{4, 2}}, {{4}}},
       [](const In& in, bool wrong) {
         return record(
             "linear", linear(in[0].detach(), in[1].detach(), in[2].detach()), {in[0], in[1], in[2]}, {in[0], in[1]},
             [wrong](const Backward& b) -> Grads {
               return {matmul(b.grad(), b.saved(1)), matmul(t(b.grad()), b.saved(0)), wrong ? b.grad()[0] : sum(b.grad(), 0)};
             });
       }},
      layer_norm_without("layer_norm: without the mean term", LayerNormMistake::mean_term),
      layer_norm_without("layer_norm: without the variance term", LayerNormMistake::variance_term),
      layer_norm_without("layer_norm: the weight's gradient takes x as it is", LayerNormMistake::weight),
      {"attention: the scale is forgotten", "gradcheck", attention,
       [](const In& in, bool wrong) {
         const Tensor q = in[0].detach(), k = in[1].detach(), v = in[2].detach();
         const Tensor weights = softmax(matmul(q, transpose(k, 1, 2)) / 2, -1);
         return record("attention", matmul(weights, v), {in[0], in[1], in[2]}, {q, k, v, weights},
                       [wrong](const Backward& b) -> Grads {
                         const Tensor& w = b.saved(3);
                         const Tensor dw = matmul(b.grad(), transpose(b.saved(2), 1, 2)) * w;
                         const Tensor scores = (dw - w * sum(dw, -1, true)) * (wrong ? 1.0 : 0.5);
                         return {matmul(scores, b.saved(1)), matmul(transpose(scores, 1, 2), b.saved(0)),
                                 matmul(transpose(w, 1, 2), b.grad())};
                       });
       }},
  };
}

std::vector<WrongRule> wrong_shape_rules() {
  return {
      {"transpose: the gradient is not transposed back", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         return record("transpose", transpose(in[0].detach(), 0, 1), {in[0]}, {},
                       [wrong](const Backward& b) -> Grads { return {wrong ? b.grad() : t(b.grad())}; });
       }},
      {"permute: the same permutation instead of its inverse",
       "gradcheck",
       {{{2, 2, 2}}},
       [](const In& in, bool wrong) {
         return record("permute", permute(in[0].detach(), {1, 2, 0}), {in[0]}, {}, [wrong](const Backward& b) -> Grads {
           return {permute(b.grad(), wrong ? Shape{1, 2, 0} : Shape{2, 0, 1})};
         });
       }},
      {"reshape: the gradient keeps the new shape",
       "gradcheck",
       {{{2, 3}}},
       [](const In& in, bool wrong) {
         return record("reshape", reshape(in[0].detach(), {3, 2}), {in[0]}, {}, [wrong](const Backward& b) -> Grads {
           return {wrong ? b.grad() : reshape(b.grad(), {2, 3})};
         });
       }},
      {"slice: one place off",
       "gradcheck",
       {{{5, 2}}},
       [](const In& in, bool wrong) {
         return record("slice", slice(in[0].detach(), 0, 1, 3), {in[0]}, {}, [wrong](const Backward& b) -> Grads {
           const Tensor dx = zeros({5, 2}, b.grad().dtype());
           Tensor window = slice(dx, 0, wrong ? 2 : 1, wrong ? 4 : 3);
           copy_(window, b.grad());
           return {dx};
         });
       }},
      {"expand: the mean of the copies instead of their sum",
       "gradcheck",
       {{{3, 1}}},
       [](const In& in, bool wrong) {
         return record("expand", expand(in[0].detach(), {3, 4}), {in[0]}, {}, [wrong](const Backward& b) -> Grads {
           return {wrong ? mean(b.grad(), 1, true) : sum(b.grad(), 1, true)};
         });
       }},
      {"cat: the parts are swapped", "gradcheck", kTwoSquares,
       [](const In& in, bool wrong) {
         return record("cat", cat({in[0].detach(), in[1].detach()}), {in[0], in[1]}, {}, [wrong](const Backward& b) -> Grads {
           const std::vector<Tensor> parts = split(b.grad(), 3);
           return {parts[wrong ? 1 : 0], parts[wrong ? 0 : 1]};
         });
       }},
      picked_rows("gather: a repeated row overwrites instead of adding", false),
      picked_rows("gather: the last row is forgotten", true),
      {"tril: the diagonal is cut off", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         return record("tril", tril(in[0].detach()), {in[0]}, {},
                       [wrong](const Backward& b) -> Grads { return {tril(b.grad(), wrong ? -1 : 0)}; });
       }},
  };
}

}  // namespace onestep::testing
