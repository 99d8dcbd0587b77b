#pragma once
// Elementwise loops over formulas by the vector instructions of each instruction set.
#include "autograd/ops/elementwise.h"
#include "autograd/vector_loop.h"

namespace onestep::ops {

/// A row function from a formula, as Loop is, which vector instructions make faster. They do where the formula has no branches:
/// choices between values that are both computed.
template <class F>
struct Vectorized {
  static constexpr double kCost = 2;  ///< Rough nanoseconds an element takes.
  F f;

  template <class X, class Y>
  void operator()(const X* x, Y* y, int64_t n) const {
    kernels::parallel_for(n, kCost, [=, this](int64_t i, int64_t end) { vector_loop(f, y + i, end - i, x + i); });
  }

  template <class A, class B, class Y>
  void operator()(const A* a, int64_t a_step, const B* b, int64_t b_step, Y* y, int64_t n) const {
    constexpr int64_t block = 256;
    A same_a[block];
    B same_b[block];
    if (a_step == 0) std::fill_n(same_a, std::min(n, block), *a);
    if (b_step == 0) std::fill_n(same_b, std::min(n, block), *b);
    const int64_t most = a_step == 0 || b_step == 0 ? block : n;
    kernels::parallel_for(n, kCost, [&, this](int64_t i, int64_t end) {
      for (; i < end; i += most)
        vector_loop(f, y + i, std::min(most, end - i), a_step == 0 ? same_a : a + i, b_step == 0 ? same_b : b + i);
    });
  }
};
template <class F>
Vectorized(F) -> Vectorized<F>;

}  // namespace onestep::ops
