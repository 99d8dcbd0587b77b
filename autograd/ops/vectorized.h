#pragma once
// Elementwise loops over formulas of many operations: the compiler makes them of the vector instructions of each instruction
// set, as kernels/simd.h does by hand. The bits are the same, because the operations are.
#include "autograd/ops/elementwise.h"

// Of a function marked so there is one for each instruction set, of which the dynamic linker takes the best for the CPU. Other
// compilers and sanitizers get the one for all CPUs.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define ONESTEP_EACH_ISA [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), gnu::flatten]]
#else
#define ONESTEP_EACH_ISA
#endif

namespace onestep::ops {

template <class F, class X, class Y>
ONESTEP_EACH_ISA void vector_loop(const F f, const X* x, Y* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Y>(f(x[i]));
}
template <class F, class A, class B, class Y>
ONESTEP_EACH_ISA void vector_loop(const F f, const A* a, const B* b, Y* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Y>(f(a[i], b[i]));
}

/// A row function from a formula, as Loop is, which vector instructions make faster. They do where the formula has no branches:
/// choices between values that are both computed.
template <class F>
struct Vectorized {
  static constexpr double kCost = 2;  ///< Rough nanoseconds an element takes.
  F f;

  template <class X, class Y>
  void operator()(const X* x, Y* y, int64_t n) const {
    kernels::parallel_for(n, kCost, [=, this](int64_t i, int64_t end) { vector_loop(f, x + i, y + i, end - i); });
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
        vector_loop(f, a_step == 0 ? same_a : a + i, b_step == 0 ? same_b : b + i, y + i, std::min(most, end - i));
    });
  }
};
template <class F>
Vectorized(F) -> Vectorized<F>;

}  // namespace onestep::ops
