#pragma once
// Elementwise functions from formulas: one for the values and one for the gradient, which is also that of the second
// derivative.
#include "autograd/ops/vectorized.h"
#include "autograd/portable_formulas_float.h"

namespace onestep::ops {

/// Records `y`, computed from `inputs`, with gradients of 0.
inline Tensor record_constant(const char* op, const Tensor& y, const Tensor& x) {
  return record(op, y, {x}, {}, [](const Backward& b) -> Grads { return {zeros_like(b.grad())}; });
}

/// y = row(x) and dx = grad(dy, x), a formula for numbers and tensors.
template <class Row, class Grad>
Tensor function_of_input(const char* op, const Tensor& x, const Row& row, const Grad& grad) {
  return record(op, map_floating(op, x, row), {x}, {x}, [op, grad](const Backward& b) -> Grads {
    const Tensor& v = b.saved(0);
    const Tensor dx = chain<Vectorized>(b, v, grad);
    const bool in_pieces = b.recording() && !dx.requires_grad() && &dx.impl() != &b.grad().impl();
    return {in_pieces ? record_constant(op, dx.values(), v) : dx};  // dx depends on x, with a derivative of 0
  });
}

/// y = row(x) and dx = grad(dy, y).
template <class Row, class Grad>
Tensor function_of_output(const char* op, const Tensor& x, const Row& row, const Grad& grad) {
  const Tensor y = map_floating(op, x, row);
  return record(op, y, {x}, {y}, [grad](const Backward& b) -> Grads { return {chain<Vectorized>(b, b.saved(0), grad)}; });
}

}  // namespace onestep::ops
