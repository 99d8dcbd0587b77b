#pragma once
// Elementwise functions from formulas: one for the values and one for the gradient, which is also that of the second
// derivative.
#include "autograd/ops/elementwise.h"

namespace onestep::ops {

/// A row function from a formula in double, rounded once: with the functions of portable_math.h, float32 results are nearly
/// always the nearest, and the same on every machine.
template <class F>
struct InDouble {
  static constexpr double kCost = 15;  ///< Rough nanoseconds an element takes.
  F f;

  template <class T>
  void operator()(const T* x, T* y, int64_t n) const {
    kernels::parallel_for(n, kCost, [=, this](int64_t i, int64_t end) {
      for (; i < end; ++i) y[i] = static_cast<T>(f(static_cast<double>(x[i])));
    });
  }
  template <class T>
  void operator()(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) const {
    kernels::parallel_for(n, kCost, [=, this](int64_t i, int64_t end) {
      for (; i < end; ++i) y[i] = static_cast<T>(f(static_cast<double>(a[i * a_step]), static_cast<double>(b[i * b_step])));
    });
  }
};
template <class F>
InDouble(F) -> InDouble<F>;

template <class Row>
inline constexpr bool in_double = false;
template <class F>
inline constexpr bool in_double<InDouble<F>> = true;

/// chain() with the numbers widened to double.
template <class F>
Tensor chain_in_double(const Backward& b, const Tensor& v, const F& f) {
  return chain(b, v, [&f]<class T>(const T& g, const T& u) {
    if constexpr (std::is_arithmetic_v<T>)
      return f(static_cast<double>(g), static_cast<double>(u));
    else
      return f(g, u);
  });
}

/// Records `y`, computed from `inputs`, with gradients of 0.
inline Tensor record_constant(const char* op, const Tensor& y, const Tensor& x) {
  return record(op, y, {x}, {}, [](const Backward& b) -> Grads { return {zeros_like(b.grad())}; });
}

/// y = row(x) and dx = grad(dy, x), a formula for numbers and tensors; for numbers in double where `row` is.
template <class Row, class Grad>
Tensor function_of_input(const char* op, const Tensor& x, const Row& row, const Grad& grad) {
  return record(op, map_floating(op, x, row), {x}, {x}, [op, grad](const Backward& b) -> Grads {
    const Tensor dx = in_double<Row> ? chain_in_double(b, b.saved(0), grad) : chain(b, b.saved(0), grad);
    const bool in_pieces = b.recording() && !dx.requires_grad() && &dx.impl() != &b.grad().impl();
    return {in_pieces ? record_constant(op, dx.values(), b.saved(0)) : dx};  // dx depends on x, with a derivative of 0
  });
}

/// y = row(x) and dx = grad(dy, y).
template <class Row, class Grad>
Tensor function_of_output(const char* op, const Tensor& x, const Row& row, const Grad& grad) {
  const Tensor y = map_floating(op, x, row);
  return record(op, y, {x}, {y}, [grad](const Backward& b) -> Grads { return {chain_in_double(b, b.saved(0), grad)}; });
}

}  // namespace onestep::ops
