// Rules that are right in an ordinary backward pass and wrong in a recorded one: what they return has wrong derivatives, or
// none.
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/wrong_rules.h"

namespace onestep::testing {
namespace {

using In = std::vector<Tensor>;

const std::vector<InputSpec> kSquare{{{3, 3}}}, kTwoSquares{{{3, 3}}, {{3, 3}}};
constexpr const char* kCaughtBy = "second derivatives";

/// An op of one tensor whose rule is `grad(b, wrong)`, with wrong = false unless the pass is recorded. Saved are the input and
/// the result.
template <class Grad>
WrongRule unary(const char* mistake, std::vector<InputSpec> inputs, Tensor (*forward)(const Tensor&), Grad grad) {
  return {mistake, kCaughtBy, std::move(inputs), [=](const In& in, bool wrong) {
            const Tensor y = forward(in[0].detach());
            return record(mistake, y, {in[0]}, {in[0], y},
                          [=](const Backward& b) -> Grads { return {grad(b, wrong && b.recording())}; });
          }};
}

Tensor constant_if(bool wrong, const Tensor& x) { return wrong ? x.detach() : x; }

Tensor squared(const Tensor& x) { return x * x; }
Tensor cube(const Tensor& x) { return x * x * x; }
Tensor softmax_of_rows(const Tensor& x) { return softmax(x, 1); }
Tensor log_softmax_of_rows(const Tensor& x) { return log_softmax(x, 1); }
Tensor product_of_rows(const Tensor& x) { return prod(x, 1); }
Tensor normalized_rows(const Tensor& x) { return layer_norm(x, 3); }
Tensor loss_of_rows(const Tensor& x) { return cross_entropy(x, tensor({0, 2, 1})); }
Tensor second_column(const Tensor& x) { return select(x, 1, 1); }
Tensor sums_of_rows(const Tensor& x) { return cumsum(x, 1); }

/// Reverse running sums of the rows [3, 3] of x; the rule sums forwards, or backwards again with `wrong`.
Tensor reverse_sums(const Tensor& x, bool wrong) {
  const Tensor backwards = tensor({{1, 0, 0}, {1, 1, 0}, {1, 1, 1}}, x.dtype());
  return record("sums", matmul(x.detach(), backwards), {x}, {backwards},
                [wrong](const Backward& b) -> Grads { return {matmul(b.grad(), wrong ? b.saved(0) : t(b.saved(0)))}; });
}

/// The rule of attention of one head with causal mask.
WrongRule attention(const char* mistake, bool forgets_mask) {
  return {mistake, kCaughtBy, {{{3, 2}}, {{3, 2}}, {{3, 2}}}, [=](const In& in, bool wrong) {
            const Tensor y = scaled_dot_product_attention(in[0].detach(), in[1].detach(), in[2].detach(), {.is_causal = true});
            return record("attention", y, {in[0], in[1], in[2]}, {in[0], in[1], in[2]}, [=](const Backward& b) -> Grads {
              const Tensor &q = b.saved(0), &k = b.saved(1), &v = b.saved(2), &dy = b.grad();
              const Tensor scores = matmul(q, t(k)) * std::sqrt(0.5), later = triu(ones_like(scores), 1).to(DType::boolean);
              const bool mistaken = wrong && b.recording();
              const Tensor p = softmax(mistaken && forgets_mask ? scores : masked_fill(scores, later, -1e4), -1);
              const Tensor weights = constant_if(mistaken && !forgets_mask, p), dp = matmul(dy, t(v));
              const Tensor ds = weights * (dp - sum(weights * dp, -1, true)) * std::sqrt(0.5);
              return {matmul(ds, k), matmul(t(ds), q), matmul(t(weights), dy)};
            });
          }};
}

std::vector<WrongRule> wrong_elementwise() {
  return {
      unary("square: the saved input is taken for a constant", kSquare, squared,
            [](const Backward& b, bool wrong) { return b.grad() * 2 * constant_if(wrong, b.saved(0)); }),
      unary("square: the gradient that arrives is taken for a constant", kSquare, squared,
            [](const Backward& b, bool wrong) { return constant_if(wrong, b.grad()) * 2 * b.saved(0); }),
      unary("pow: the power in the rule is taken for a constant", kSquare, cube,
            [](const Backward& b, bool wrong) { return b.grad() * 3 * constant_if(wrong, pow(b.saved(0), 2)); }),
      unary("tanh: the rule's kernel is used in a recorded pass, too", kSquare, tanh,
            [](const Backward& b, bool wrong) {
              if (b.recording() && !wrong) return b.grad() * (1 - b.saved(1) * b.saved(1));
              const NoGradGuard values_only;
              return b.grad() * (1 - b.saved(1) * b.saved(1));
            }),
      unary("sin: wrong sign in the recorded pass alone", kSquare, sin,
            [](const Backward& b, bool wrong) { return b.grad() * cos(b.saved(0)) * (wrong ? -1.0 : 1.0); }),
      unary("neg: a float32 gradient in the recorded pass", kSquare, neg,
            [](const Backward& b, bool wrong) { return wrong ? to(-b.grad(), DType::float32) : -b.grad(); }),
      {"exp: a copy of the result is saved", kCaughtBy, kSquare,
       [](const In& in, bool wrong) {
         const Tensor y = exp(in[0].detach());
         return record("exp", y, {in[0]}, {wrong ? y.clone() : y},
                       [](const Backward& b) -> Grads { return {b.grad() * b.saved(0)}; });
       }},
      {"mul: one factor is taken for a constant", kCaughtBy, kTwoSquares,
       [](const In& in, bool wrong) {
         return record("mul", in[0].detach() * in[1].detach(), {in[0], in[1]}, {in[0], in[1]},
                       [wrong](const Backward& b) -> Grads {
                         return {b.grad() * constant_if(wrong, b.saved(1)), b.grad() * b.saved(0)};
                       });
       }},
      {"where: the sides are swapped in the recorded pass", kCaughtBy, kTwoSquares,
       [](const In& in, bool wrong) {
         const Tensor left = gt(in[0], in[1]);
         return record("where", where(left, in[0].detach(), in[1].detach()), {in[0], in[1]}, {left},
                       [wrong](const Backward& b) -> Grads {
                         const Tensor first = where(b.saved(0), b.grad(), zeros_like(b.grad())), second = b.grad() - first;
                         return wrong && b.recording() ? Grads{second, first} : Grads{first, second};
                       });
       }},
      {"add: a broadcast operand's gradient is not summed in the recorded pass",
       kCaughtBy,
       {{{3, 3}}, {{3}}},
       [](const In& in, bool wrong) {
         return record("add", in[0].detach() + in[1].detach(), {in[0], in[1]}, {}, [wrong](const Backward& b) -> Grads {
           return {b.grad(), wrong && b.recording() ? b.grad() : sum(b.grad(), 0)};
         });
       }},
      {"dropout: the recorded pass draws another mask",
       kCaughtBy,
       {{{4, 5}}},
       [](const In& in, bool wrong) {
         Generator generator(3), other(4);
         const Tensor kept = dropout(ones_like(in[0]), 0.25, true, generator),
                      drawn = dropout(ones_like(in[0]), 0.25, true, other);
         return record("dropout", in[0].detach() * kept, {in[0]}, {kept, drawn},
                       [wrong](const Backward& b) -> Grads { return {b.grad() * b.saved(wrong && b.recording() ? 1 : 0)}; });
       }},
  };
}

std::vector<WrongRule> wrong_rows() {
  return {
      unary("softmax: without the inner sum", kSquare, softmax_of_rows,
            [](const Backward& b, bool wrong) {
              const Tensor &y = b.saved(1), weighted = y * b.grad();
              return wrong ? weighted : weighted - y * sum(weighted, 1, true);
            }),
      unary("softmax: the inner sum is taken for a constant", kSquare, softmax_of_rows,
            [](const Backward& b, bool wrong) {
              const Tensor &y = b.saved(1), weighted = y * b.grad();
              return weighted - y * constant_if(wrong, sum(weighted, 1, true));
            }),
      unary("log_softmax: the probabilities are taken for constants", kSquare, log_softmax_of_rows,
            [](const Backward& b, bool wrong) {
              return b.grad() - constant_if(wrong, exp(b.saved(1))) * sum(b.grad(), 1, true);
            }),
      unary("cross_entropy: the probabilities are taken for constants", kSquare, loss_of_rows,
            [](const Backward& b, bool wrong) {
              const Tensor& x = b.saved(0);
              const Tensor wanted = index_select(eye(3, x.dtype()), 0, tensor({0, 2, 1}));
              return (constant_if(wrong, softmax(x, 1)) - wanted) * b.grad() / 3;
            }),
      unary("layer_norm: the deviation is taken for a constant", kSquare, normalized_rows,
            [](const Backward& b, bool wrong) {
              const Tensor& x = b.saved(0);
              const Tensor rstd = constant_if(wrong, rsqrt(var(x, 1, 0, true) + 1e-5)), h = (x - mean(x, 1, true)) * rstd;
              return (b.grad() - mean(b.grad(), 1, true) - h * mean(b.grad() * h, 1, true)) * rstd;
            }),
      unary("prod: divides by an element that is 0", {{.shape = {1, 3}, .values = {0, 2, 3}}}, product_of_rows,
            [](const Backward& b, bool wrong) {
              const Tensor &x = b.saved(0), dy = unsqueeze(b.grad(), 1);
              if (wrong) return dy * unsqueeze(b.saved(1), 1) / x;
              const Tensor a = x.slice(1, 0, 1), rest = x.slice(1, 1, 3);
              return cat({dy * prod(rest, 1, true), dy * a * rest.slice(1, 1, 2), dy * a * rest.slice(1, 0, 1)}, 1);
            }),
      unary("select: the window is written by hand", kSquare, second_column,
            [](const Backward& b, bool wrong) {
              const Tensor none = zeros({3, 1}, b.grad().dtype()), column = unsqueeze(constant_if(wrong, b.grad()), 1);
              return cat({none, column, none}, 1);
            }),
      unary("cumsum: the gradient of the gradient is summed backwards again", kSquare, sums_of_rows,
            [](const Backward& b, bool wrong) { return reverse_sums(b.grad(), wrong); }),
      {"matmul: the right side is not transposed in the recorded pass", kCaughtBy, kTwoSquares,
       [](const In& in, bool wrong) {
         return record("matmul", matmul(in[0].detach(), in[1].detach()), {in[0], in[1]}, {in[0], in[1]},
                       [wrong](const Backward& b) -> Grads {
                         const Tensor& right = b.saved(1);
                         return {matmul(b.grad(), wrong && b.recording() ? right : t(right)), matmul(t(b.saved(0)), b.grad())};
                       });
       }},
      attention("attention: the recorded pass forgets the mask", true),
      attention("attention: the weights are taken for constants", false),
  };
}

}  // namespace

std::vector<WrongRule> wrong_second_forms() {
  std::vector<WrongRule> all = wrong_elementwise();
  for (WrongRule& rule : wrong_rows()) all.push_back(std::move(rule));
  return all;
}

}  // namespace onestep::testing
