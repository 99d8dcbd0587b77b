#pragma once
// Elementwise functions from formulas: one for the values and one for the gradient, which is also that of the second
// derivative.
#include "autograd/ops/vectorized.h"
#include "autograd/portable_formulas.h"

namespace onestep::ops {

/// A formula of doubles, of numbers that are widened. One that is a template gets the digits that the result needs.
template <class F>
struct Widened {
  F f;

  template <class... T>
  ONESTEP_FORMULA double operator()(T... v) const {
    constexpr int digits = portable::formulas::kDigits<std::common_type_t<T...>>;
    if constexpr (requires { f.template operator()<digits>(static_cast<double>(v)...); })
      return f.template operator()<digits>(static_cast<double>(v)...);
    else
      return f(static_cast<double>(v)...);
  }
};

/// A row function from a formula in double, rounded once: with the functions of portable_formulas.h, float32 results are nearly
/// always the nearest, and the same on every machine.
template <class F>
struct InDouble : Vectorized<Widened<F>> {
  explicit InDouble(F of_doubles) : Vectorized<Widened<F>>{{of_doubles}} {}
};

template <class Row>
inline constexpr bool in_double = false;
template <class F>
inline constexpr bool in_double<InDouble<F>> = true;

/// Records `y`, computed from `inputs`, with gradients of 0.
inline Tensor record_constant(const char* op, const Tensor& y, const Tensor& x) {
  return record(op, y, {x}, {}, [](const Backward& b) -> Grads { return {zeros_like(b.grad())}; });
}

/// y = row(x) and dx = grad(dy, x), a formula for numbers and tensors; for numbers in double where `row` is.
template <class Row, class Grad>
Tensor function_of_input(const char* op, const Tensor& x, const Row& row, const Grad& grad) {
  return record(op, map_floating(op, x, row), {x}, {x}, [op, grad](const Backward& b) -> Grads {
    const Tensor& v = b.saved(0);
    const Tensor dx = in_double<Row> ? chain<InDouble>(b, v, grad) : chain<Vectorized>(b, v, grad);
    const bool in_pieces = b.recording() && !dx.requires_grad() && &dx.impl() != &b.grad().impl();
    return {in_pieces ? record_constant(op, dx.values(), v) : dx};  // dx depends on x, with a derivative of 0
  });
}

/// y = row(x) and dx = grad(dy, y).
template <class Row, class Grad>
Tensor function_of_output(const char* op, const Tensor& x, const Row& row, const Grad& grad) {
  const Tensor y = map_floating(op, x, row);
  return record(op, y, {x}, {y}, [grad](const Backward& b) -> Grads { return {chain<InDouble>(b, b.saved(0), grad)}; });
}

}  // namespace onestep::ops
