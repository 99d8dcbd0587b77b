// Wrong rules of elementwise ops and reductions.
#include "autograd/ops.h"
#include "tests/autograd/wrong_rules.h"

namespace onestep::testing {
namespace {

using In = std::vector<Tensor>;

const std::vector<InputSpec> kSquare{{{3, 3}}};
const std::vector<InputSpec> kPositive{{.shape = {3, 3}, .low = 0.5, .high = 3}};

/// dx = dy * slope(saved) with the right slope or another one; `output` is what is saved: the result or the input.
template <class Right, class Wrong>
WrongRule unary(const char* mistake, std::vector<InputSpec> inputs, Tensor (*forward)(const Tensor&), bool saves_output,
                Right right_slope, Wrong wrong_slope) {
  return {mistake, "gradcheck", std::move(inputs), [=](const In& in, bool wrong) {
            const Tensor y = forward(in[0].detach());
            return record(mistake, y, {in[0]}, {saves_output ? y : in[0]}, [=](const Backward& b) -> Grads {
              return {b.grad() * (wrong ? wrong_slope(b.saved(0)) : right_slope(b.saved(0)))};
            });
          }};
}

/// A binary op with broadcasting: the gradient of input i is summed to its shape.
template <class Slopes>
WrongRule binary(const char* mistake, std::vector<InputSpec> inputs, Tensor (*forward)(const Tensor&, const Tensor&),
                 Slopes slopes) {
  return {mistake, "gradcheck", std::move(inputs), [=](const In& in, bool wrong) {
            return record(mistake, forward(in[0].detach(), in[1].detach()), {in[0], in[1]}, {in[0], in[1]},
                          [=](const Backward& b) -> Grads {
                            Grads grads = slopes(b.saved(0), b.saved(1), wrong);
                            for (size_t i = 0; i < 2; ++i) {
                              if (!b.needs(i)) continue;
                              grads[i] = b.grad() * grads[i];
                              if (b.input_shape(i) != b.grad().shape()) grads[i] = sum(grads[i], 0);
                            }
                            return grads;
                          });
          }};
}

Tensor squared(const Tensor& x) { return x * x; }
Tensor gelu_tanh(const Tensor& x) { return gelu(x, GeluApproximation::tanh); }
Tensor gelu_erf(const Tensor& x) { return gelu(x); }

/// d/dx 0.5 x (1 + tanh(sqrt(2/pi) (x + c x^3)))
Tensor gelu_slope(const Tensor& x, double c) {
  const double root = 0.7978845608028654;
  const Tensor t = tanh((x + x * x * x * c) * root);
  return (1 + t) * 0.5 + x * 0.5 * (1 - t * t) * (1 + x * x * (3 * c)) * root;
}

/// Phi(x) + x phi(x)
Tensor gelu_erf_slope(const Tensor& x) { return gelu(x) / x + x * exp(x * x * -0.5) * 0.3989422804014327; }

Tensor positive(const Tensor& x) { return to(gt(x, 0), x.dtype()); }

}  // namespace

std::vector<WrongRule> wrong_elementwise_rules() {
  const auto one = [](const Tensor& x) { return ones_like(x); };
  const std::vector<InputSpec> kinked{{.shape = {3, 3}, .avoid = {0}}}, two{{{3, 3}}, {{3, 3}}}, row{{{3, 3}}, {{3}}},
      quotient{{{3, 3}}, {.shape = {3, 3}, .low = 0.5, .high = 3}};
  return {
      unary(
          "square: the factor 2 is missing", kSquare, squared, false, [](const Tensor& x) { return x * 2; },
          [](const Tensor& x) { return x; }),
      unary(
          "neg: wrong sign", kSquare, neg, false, [](const Tensor& x) { return -ones_like(x); }, one),
      unary(
          "exp: the input is saved instead of the result", kSquare, exp, false, [](const Tensor& x) { return exp(x); },
          [](const Tensor& x) { return x; }),
      unary(
          "log: 1 / x is forgotten", kPositive, log, false, [](const Tensor& x) { return 1 / x; }, one),
      unary(
          "sqrt: the factor 1/2 is missing", kPositive, sqrt, true, [](const Tensor& y) { return 0.5 / y; },
          [](const Tensor& y) { return 1 / y; }),
      unary(
          "tanh: y is not squared", kSquare, tanh, true, [](const Tensor& y) { return 1 - y * y; },
          [](const Tensor& y) { return 1 - y; }),
      unary(
          "sigmoid: the factor 1 - y is missing", kSquare, sigmoid, true, [](const Tensor& y) { return y * (1 - y); },
          [](const Tensor& y) { return y; }),
      unary("relu: lets everything through", kinked, relu, false, positive, one),
      unary(
          "abs: the sign is forgotten", kinked, abs, false, [](const Tensor& x) { return positive(x) * 2 - 1; }, one),
      unary(
          "gelu: two digits of 0.044715 swapped", kSquare, gelu_tanh, false,
          [](const Tensor& x) { return gelu_slope(x, 0.044715); }, [](const Tensor& x) { return gelu_slope(x, 0.047415); }),
      unary("gelu: the tanh form's slope for the erf form", kinked, gelu_erf, false, gelu_erf_slope,
            [](const Tensor& x) { return gelu_slope(x, 0.044715); }),
      binary("sub: the second gradient has the wrong sign", two, sub,
             [](const Tensor& a, const Tensor& b, bool wrong) {
               return Grads{ones_like(a), wrong ? ones_like(b) : -ones_like(b)};
             }),
      binary("mul: each factor gets itself", row, mul,
             [](const Tensor& a, const Tensor& b, bool wrong) {
               return wrong ? Grads{a, expand(b, a.shape())} : Grads{b, a};
             }),
      binary("div: the divisor is not squared", quotient, div,
             [](const Tensor& a, const Tensor& b, bool wrong) {
               return Grads{1 / b, wrong ? -a / b : -a / (b * b)};
             }),
      {"pow: the exponent is not lowered", "gradcheck", kPositive,
       [](const In& in, bool wrong) {
         return record("pow", pow(in[0].detach(), 3), {in[0]}, {in[0]},
                       [wrong](const Backward& b) -> Grads { return {b.grad() * 3 * pow(b.saved(0), wrong ? 3 : 2)}; });
       }},
      {"add: the gradient of a broadcast operand is not summed", "gradcheck", row,
       [](const In& in, bool wrong) {
         return record("add", add(in[0].detach(), in[1].detach()), {in[0], in[1]}, {}, [wrong](const Backward& b) -> Grads {
           return {b.grad(), wrong ? b.grad() : sum(b.grad(), 0)};
         });
       }},
      {"add: a broadcast operand is summed over the wrong dim", "gradcheck", row,
       [](const In& in, bool wrong) {
         return record("add", add(in[0].detach(), in[1].detach()), {in[0], in[1]}, {}, [wrong](const Backward& b) -> Grads {
           return {b.grad(), sum(b.grad(), wrong ? 1 : 0)};
         });
       }},
      {"where: both sides get everything", "gradcheck", two,
       [](const In& in, bool wrong) {
         const Tensor left = gt(in[0], in[1]);
         return record("where", where(left, in[0].detach(), in[1].detach()), {in[0], in[1]}, {left},
                       [wrong](const Backward& b) -> Grads {
                         if (wrong) return {b.grad(), b.grad()};
                         return {masked_fill(b.grad(), logical_not(b.saved(0)), 0), masked_fill(b.grad(), b.saved(0), 0)};
                       });
       }},
      {"masked_fill: a gradient flows to masked places", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         const Tensor mask = gt(in[0], 0.5);
         return record(
             "masked_fill", masked_fill(in[0].detach(), mask, -1), {in[0]}, {mask},
             [wrong](const Backward& b) -> Grads { return {wrong ? b.grad() : masked_fill(b.grad(), b.saved(0), 0)}; });
       }},
      {"dropout: scaled by 1 / p instead of 1 / (1 - p)",
       "gradcheck",
       {{{4, 5}}},
       [](const In& in, bool wrong) {
         Generator generator(3);
         const Tensor kept = dropout(ones_like(in[0]), 0.25, true, generator);
         return record("dropout", in[0].detach() * kept, {in[0]}, {kept},
                       [wrong](const Backward& b) -> Grads { return {b.grad() * b.saved(0) * (wrong ? 0.75 / 0.25 : 1.0)}; });
       }},
      {"dropout: the rule draws another mask",
       "gradcheck",
       {{{4, 5}}},
       [](const In& in, bool wrong) {
         Generator generator(3), other(4);
         const Tensor kept = dropout(ones_like(in[0]), 0.25, true, generator);
         const Tensor used = wrong ? dropout(ones_like(in[0]), 0.25, true, other) : kept;
         return record("dropout", in[0].detach() * kept, {in[0]}, {used},
                       [](const Backward& b) -> Grads { return {b.grad() * b.saved(0)}; });
       }},
  };
}

std::vector<WrongRule> wrong_reduction_rules() {
  const auto spread = [](const Tensor& grad, int64_t dim) { return expand(unsqueeze(grad, dim), {3, 3}); };
  return {
      {"sum: the gradient is spread along the wrong dim", "gradcheck", kSquare,
       [spread](const In& in, bool wrong) {
         return record("sum", sum(in[0].detach(), 1), {in[0]}, {},
                       [=](const Backward& b) -> Grads { return {spread(b.grad(), wrong ? 0 : 1)}; });
       }},
      {"mean: not divided by n", "gradcheck", kSquare,
       [spread](const In& in, bool wrong) {
         return record("mean", mean(in[0].detach(), 1), {in[0]}, {},
                       [=](const Backward& b) -> Grads { return {spread(b.grad(), 1) * (wrong ? 1.0 : 1.0 / 3)}; });
       }},
      {"var: divided by n instead of n - 1", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         const Tensor x = in[0].detach();
         return record("var", var(x, 1, 1, true), {in[0]}, {x - mean(x, 1, true)},
                       [wrong](const Backward& b) -> Grads { return {b.saved(0) * b.grad() * (wrong ? 2.0 / 3 : 2.0 / 2)}; });
       }},
      {"amax: every element gets the gradient", "gradcheck", kSquare,
       [spread](const In& in, bool wrong) {
         const Tensor x = in[0].detach(), y = amax(x, 1, true);
         return record("amax", squeeze(y, 1), {in[0]}, {eq(x, y)}, [=](const Backward& b) -> Grads {
           const Tensor grad = spread(b.grad(), 1);
           return {wrong ? grad : masked_fill(grad, logical_not(b.saved(0)), 0)};
         });
       }},
      {"cumsum: summed forwards again",
       "gradcheck",
       {{{4}}},
       [](const In& in, bool wrong) {
         return record("cumsum", cumsum(in[0].detach(), 0), {in[0]}, {}, [wrong](const Backward& b) -> Grads {
           const Tensor forwards = cumsum(b.grad(), 0);
           return {wrong ? forwards : sum(b.grad()) - forwards + b.grad()};
         });
       }},
      {"softmax: without the inner sum", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         const Tensor y = softmax(in[0].detach(), 1);
         return record("softmax", y, {in[0]}, {y}, [wrong](const Backward& b) -> Grads {
           const Tensor weighted = b.saved(0) * b.grad();
           return {wrong ? weighted : weighted - b.saved(0) * sum(weighted, 1, true)};
         });
       }},
      {"softmax: the inner sum runs along the wrong dim", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         const Tensor y = softmax(in[0].detach(), 1);
         return record("softmax", y, {in[0]}, {y}, [wrong](const Backward& b) -> Grads {
           const Tensor weighted = b.saved(0) * b.grad();
           return {weighted - b.saved(0) * sum(weighted, wrong ? 0 : 1, true)};
         });
       }},
      {"log_softmax: exp of the saved result is forgotten", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         const Tensor y = log_softmax(in[0].detach(), 1);
         return record("log_softmax", y, {in[0]}, {y}, [wrong](const Backward& b) -> Grads {
           return {b.grad() - (wrong ? b.saved(0) : exp(b.saved(0))) * sum(b.grad(), 1, true)};
         });
       }},
      {"logsumexp: uniform weights", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         const Tensor x = in[0].detach();
         const Tensor weights = wrong ? full({3, 3}, 1.0 / 3, x.dtype()) : softmax(x, 1);
         return record("logsumexp", logsumexp(x, 1, true), {in[0]}, {weights},
                       [](const Backward& b) -> Grads { return {b.saved(0) * b.grad()}; });
       }},
      {"cross_entropy: not divided by the number of rows", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         const Tensor x = in[0].detach(), target = tensor({0, 2, 1});
         const Tensor error = softmax(x, 1) - index_select(eye(3, x.dtype()), 0, target);
         return record("cross_entropy", cross_entropy(x, target), {in[0]}, {error},
                       [wrong](const Backward& b) -> Grads { return {b.saved(0) * b.grad() * (wrong ? 1.0 : 1.0 / 3)}; });
       }},
      {"cross_entropy: the target is not subtracted", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         const Tensor x = in[0].detach(), target = tensor({0, 2, 1});
         const Tensor error = softmax(x, 1) - index_select(eye(3, x.dtype()), 0, target) * (wrong ? 0.0 : 1.0);
         return record("cross_entropy", cross_entropy(x, target), {in[0]}, {error},
                       [](const Backward& b) -> Grads { return {b.saved(0) * b.grad() * (1.0 / 3)}; });
       }},
      {"cross_entropy: ignored rows get a gradient", "gradcheck", kSquare,
       [](const In& in, bool wrong) {
         const Tensor x = in[0].detach();
         const Tensor counts = wrong ? ones({3, 1}, x.dtype()) : tensor({{1}, {0}, {1}}, x.dtype());
         const Tensor error = (softmax(x, 1) - index_select(eye(3, x.dtype()), 0, tensor({0, 2, 1}))) * counts;
         return record("cross_entropy", cross_entropy(x, tensor({0, -100, 1})), {in[0]}, {error},
                       [](const Backward& b) -> Grads { return {b.saved(0) * b.grad() * 0.5}; });
       }},
  };
}

}  // namespace onestep::testing
