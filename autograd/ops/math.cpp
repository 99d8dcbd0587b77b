// Functions of one operand. Integers and bools are taken as float32, except by abs and relu, which keep int64.
#include "autograd/ops/elementwise.h"

namespace onestep {

using ops::chain;

namespace {

Tensor as_floating(const Tensor& x) { return to(x, ops::floating(x.dtype())); }

/// dx = kernel(x, dy) for the activations whose derivative is a kernel.
template <class K>
Tensor kernel_grad(const Tensor& x, const Tensor& dy, const K& kernel) {
  const Tensor rows = contiguous(x), grad = contiguous(dy);
  Tensor dx = empty(x.shape(), x.dtype());
  dispatch_floating(x.dtype(), "backward",
                    [&]<class T>() { kernel(rows.data<T>(), grad.data<T>(), dx.mutable_data<T>(), x.numel()); });
  return dx;
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
    return {chain(b.grad(), b.saved(0), [](auto dy, auto root) { return dy / (2 * root); })};
  });
}

Tensor rsqrt(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("rsqrt", x, [](auto... p) { kernels::rsqrt(p...); });
  return record("rsqrt", y, {x}, {y}, [](const Backward& b) -> Grads {
    return {chain(b.grad(), b.saved(0), [](auto dy, auto v) { return dy * (v * v * v) / -2; })};
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
    return {chain(b.grad(), b.saved(0), [](auto dy, auto v) { return dy * (1 - v * v); })};
  });
}

Tensor sigmoid(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("sigmoid", x, [](auto... p) { kernels::sigmoid(p...); });
  return record("sigmoid", y, {x}, {y}, [](const Backward& b) -> Grads {
    return {chain(b.grad(), b.saved(0), [](auto dy, auto v) { return dy * ((1 - v) * v); })};
  });
}

Tensor abs(const Tensor& x) {
  check<DTypeError>(x.dtype() != DType::boolean, "abs: a bool tensor (convert with x.to(DType::int64))");
  const Tensor y = ops::map(x, ops::Loop{[](auto v) {
                              const decltype(v) zero(0);
                              return zero < v ? v : ops::minus(zero, v);  // not -v: |-0| is 0
                            }});
  return record("abs", y, {x}, {x}, [](const Backward& b) -> Grads {
    return {chain(b.grad(), b.saved(0), [](auto dy, auto v) { return v > 0 ? dy : v < 0 ? -dy : dy * v; })};  // dx = dy sign(x)
  });
}

Tensor relu(const Tensor& x) {
  check<DTypeError>(x.dtype() != DType::boolean, "relu: a bool tensor (convert with x.to(DType::int64))");
  const Tensor y = ops::map(x, ops::Loop{[](auto v) { return !(v <= decltype(v)(0)) ? v : decltype(v)(0); }});  // NaN stays
  return record("relu", y, {x}, {y}, [](const Backward& b) -> Grads {
    return {chain(b.grad(), b.saved(0), [](auto dy, auto v) { return v <= 0 ? decltype(v)(0) : dy; })};
  });
}

Tensor gelu(const Tensor& x, GeluApproximation approximate) {
  if (approximate == GeluApproximation::tanh) {
    const Tensor y = ops::map_floating("gelu", x, [](auto... p) { kernels::gelu_tanh(p...); });
    return record("gelu", y, {x}, {x}, [](const Backward& b) -> Grads {
      return {kernel_grad(b.saved(0), b.grad(), [](auto... p) { kernels::gelu_tanh_grad(p...); })};
    });
  }
  const Tensor y = ops::map_floating("gelu", x, [](auto... p) { kernels::gelu_erf(p...); });
  return record("gelu", y, {x}, {x}, [](const Backward& b) -> Grads {
    return {kernel_grad(b.saved(0), b.grad(), [](auto... p) { kernels::gelu_erf_grad(p...); })};
  });
}

Tensor silu(const Tensor& x) {
  const Tensor y = ops::map_floating("silu", x, [](auto... p) { kernels::silu(p...); });
  return record("silu", y, {x}, {x}, [](const Backward& b) -> Grads {
    return {kernel_grad(b.saved(0), b.grad(), [](auto... p) { kernels::silu_grad(p...); })};
  });
}

}  // namespace onestep
