// Functions of one operand. Integers and bools are taken as float32, except by abs and relu, which keep int64.
#include <numbers>

#include "autograd/operators.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/vectorized.h"

namespace onestep {

using ops::as_floating;
using ops::chain;

namespace {

/// An activation by kernels: f, and dx = dy f'(x). `derivative` is f'(x) in ops.
template <class F, class Grad, class Derivative>
Tensor activation(const char* op, const Tensor& x, F f, Grad grad, Derivative derivative) {
  return record(op, ops::map_floating(op, x, f), {x}, {x}, [=](const Backward& b) -> Grads {
    const DType dtype = b.grad().dtype();
    if (b.recording()) return {to(ops::wide(b.grad()) * derivative(ops::wide(b.saved(0))), dtype)};
    const Tensor v = ops::contiguous_values(b.saved(0)), dy = ops::contiguous_values(b.grad());
    Tensor dx = empty(v.shape(), dtype);
    dispatch_floating(compute_type(dtype), op, [&]<class T>() {
      ops::zip_into<T, T, T>(dx, v, dy, [&](const T* from, int64_t, const T* upstream, int64_t, T* down, int64_t n) {
        grad(from, upstream, down, n);
      });
    });
    return {dx};
  });
}

/// Phi(x) + x phi(x), of the normal distribution.
Tensor gelu_derivative(const Tensor& x) {
  return (1 + erf(x / std::numbers::sqrt2)) / 2 + x * exp(x * x / -2) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}

/// With s = sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): s + 2 x s (1 - s) du/dx. As tanh, 1 - tanh(u)^2 would lose digits.
Tensor gelu_tanh_derivative(const Tensor& x) {
  constexpr double root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;
  const Tensor u2 = 2 * root * (x + cubic * (x * x * x)), s = sigmoid(u2);
  return s + x * s * sigmoid(-u2) * (2 * root * (1 + 3 * cubic * (x * x)));
}

/// s (1 + x (1 - s)), s = sigmoid(x)
Tensor silu_derivative(const Tensor& x) {
  const Tensor s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

}  // namespace

Tensor exp(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("exp", x, [](auto... p) { kernels::exp(p...); });
  return record("exp", y, {x}, {y}, [](const Backward& b) -> Grads { return {mul(b.grad(), b.saved(0))}; });  // dx = dy y
}

Tensor log(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("log", x, [](auto... p) { kernels::log(p...); });
  return record("log", y, {x}, {x}, [](const Backward& b) -> Grads { return {div(b.grad(), b.saved(0))}; });  // dx = dy / x
}

Tensor sqrt(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("sqrt", x, [](auto... p) { kernels::sqrt(p...); });
  return record("sqrt", y, {x}, {y}, [](const Backward& b) -> Grads {
    return {chain(b, b.saved(0), [](auto dy, auto root) { return dy / (2 * root); })};
  });
}

Tensor rsqrt(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("rsqrt", x, [](auto... p) { kernels::rsqrt(p...); });
  return record("rsqrt", y, {x}, {y}, [](const Backward& b) -> Grads {
    return {chain(b, b.saved(0), [](auto dy, auto v) { return dy * (v * v * v) / -2; })};
  });
}

Tensor sin(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("sin", x, [](auto... p) { kernels::sin(p...); });
  return record("sin", y, {x}, {x}, [](const Backward& b) -> Grads { return {mul(b.grad(), cos(b.saved(0)))}; });
}

Tensor cos(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("cos", x, [](auto... p) { kernels::cos(p...); });
  return record("cos", y, {x}, {x}, [](const Backward& b) -> Grads { return {mul(b.grad(), neg(sin(b.saved(0))))}; });
}

Tensor tanh(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("tanh", x, [](auto... p) { kernels::tanh(p...); });
  return record("tanh", y, {x}, {y}, [](const Backward& b) -> Grads {
    return {chain(b, b.saved(0), [](auto dy, auto v) { return dy * (1 - v * v); })};
  });
}

Tensor sigmoid(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("sigmoid", x, [](auto... p) { kernels::sigmoid(p...); });
  return record("sigmoid", y, {x}, {y}, [](const Backward& b) -> Grads {
    return {chain(b, b.saved(0), [](auto dy, auto v) { return dy * ((1 - v) * v); })};
  });
}

namespace {
double sign(double v) { return static_cast<double>((v > 0) - (v < 0)); }
}  // namespace

Tensor abs(const Tensor& x) {
  ONESTEP_CHECK(DTypeError, x.dtype() != DType::boolean, "abs: a bool tensor (convert with x.to(DType::int64))");
  const Tensor y = ops::map("abs", x,
                            ops::KernelOrLoop{[](auto... p) { kernels::abs(p...); },
                                              [](auto v) { return v > decltype(v)(0) ? v : ops::minus(decltype(v)(0), v); }});
  return record("abs", y, {x}, {x}, [](const Backward& b) -> Grads {  // dx = dy sign(x), which is 0 at NaN as torch.sgn
    return {chain(b, b.saved(0), [](auto dy, auto v) { return static_cast<decltype(dy)>(dy * sign(v)); })};
  });
}

Tensor relu(const Tensor& x) {
  ONESTEP_CHECK(DTypeError, x.dtype() != DType::boolean, "relu: a bool tensor (convert with x.to(DType::int64))");
  const Tensor y = ops::map(
      "relu", x, ops::KernelOrLoop{[](auto... p) { kernels::relu(p...); }, [](auto v) { return std::max(v, decltype(v)(0)); }});
  return record("relu", y, {x}, {y}, [](const Backward& b) -> Grads {
    return {chain(b, b.saved(0), [](auto dy, auto v) { return ops::select_if(v <= 0, 0 * v, dy); })};  // of v, too
  });
}

Tensor gelu(const Tensor& x, GeluApproximation approximate) {
  if (approximate == GeluApproximation::tanh)
    return activation(
        "gelu", x, [](auto... p) { kernels::gelu_tanh(p...); }, [](auto... p) { kernels::gelu_tanh_grad(p...); },
        gelu_tanh_derivative);
  return activation(
      "gelu", x, [](auto... p) { kernels::gelu_erf(p...); }, [](auto... p) { kernels::gelu_erf_grad(p...); }, gelu_derivative);
}

Tensor silu(const Tensor& x) {
  return activation(
      "silu", x, [](auto... p) { kernels::silu(p...); }, [](auto... p) { kernels::silu_grad(p...); }, silu_derivative);
}

Tensor clamp(const Tensor& input, std::optional<Scalar> low, std::optional<Scalar> high) {
  ONESTEP_CHECK(ConfigError, low || high, "clamp: needs a least or a largest value");
  DType dtype = input.dtype();
  for (const auto& bound : {low, high})
    if (bound) dtype = result_type(to(input, dtype), *bound);
  for (const auto& bound : {low, high})
    if (bound) ops::check_fits("clamp", *bound, dtype);
  const bool nan = (low && std::isnan(low->value)) || (high && std::isnan(high->value));
  const Tensor x = to(input, dtype);
  const bool below = low.has_value(), above = high.has_value();
  const Scalar least = low.value_or(0), most = high.value_or(0);
  const auto clamped = [=]<class T>(T v) {  // choices between values, for vector instructions
    const T l = ops::element<T>(least), m = ops::element<T>(most);
    v = (below & (v < l)) ? l : v;
    v = (above & (v > m)) ? m : v;
    return nan ? static_cast<T>(std::numeric_limits<double>::quiet_NaN()) : v;
  };
  return record("clamp", ops::map("clamp", x, ops::Vectorized{clamped}), {x}, {x}, [low, high](const Backward& b) -> Grads {
    return {chain(b, b.saved(0), [=](auto dy, auto v) {  // dx = dy where x lies within the bounds
      if (low) dy = ops::select_if(v >= ops::number_like(v, *low), dy, 0);
      if (high) dy = ops::select_if(v <= ops::number_like(v, *high), dy, 0);
      return dy;
    })};
  });
}

}  // namespace onestep
