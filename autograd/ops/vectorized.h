#pragma once
// Elementwise loops over formulas by the vector instructions of each instruction set.
#include <array>

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

  /// y[i] = f(a[i], b[i], c[i]), each of a step of 1 or 0.
  template <class T>
  void operator()(const std::array<const T*, 3>& from, const std::array<int64_t, 3>& steps, T* y, int64_t n) const {
    constexpr int64_t block = 256;
    std::array<std::array<T, block>, 3> same;  // of those that are one element
    for (size_t k = 0; k < 3; ++k)
      if (steps[k] == 0) std::fill_n(same[k].data(), std::min(n, block), *from[k]);
    const int64_t most = std::count(steps.begin(), steps.end(), 0) > 0 ? block : n;
    kernels::parallel_for(n, kCost, [&, this](int64_t i, int64_t end) {
      for (; i < end; i += most) {
        const auto at = [&](size_t k) { return steps[k] == 0 ? same[k].data() : from[k] + i; };
        vector_loop(f, y + i, std::min(most, end - i), at(0), at(1), at(2));
      }
    });
  }
};
template <class F>
Vectorized(F) -> Vectorized<F>;

/// A row function as ZipRow, of three operands.
struct ZipThreeRow {
  const void* row;
  void (*call)(const void* row, const std::array<const void*, 3>& from, const std::array<int64_t, 3>& steps, void* y,
               int64_t n);
};
/// row(a, b, c) elementwise, in a's dtype.
Tensor zip_three_rows(const char* op, const Tensor& a, const Tensor& b, const Tensor& c, const ZipThreeRow& row);

/// f(a, b, c) elementwise for floating operands of one dtype, broadcast; not recorded. Throws ShapeError or DTypeError naming
/// `op`.
template <class F>
Tensor zip_three(const char* op, const Tensor& a, const Tensor& b, const Tensor& c, const Vectorized<F>& row) {
  return dispatch_floating(compute_type(a.dtype()), op, [&]<class T>() {
    return zip_three_rows(
        op, a, b, c,
        {&row,
         [](const void* f, const std::array<const void*, 3>& from, const std::array<int64_t, 3>& steps, void* y, int64_t n) {
           const auto at = [&](size_t k) { return static_cast<const T*>(from[k]); };
           (*static_cast<const Vectorized<F>*>(f))(std::array{at(0), at(1), at(2)}, steps, static_cast<T*>(y), n);
         }});
  });
}

/// A row function from a kernel and a formula: y[i] = f(a[i], kernel(b[i])), block by block in the L1 cache.
template <class K, class F>
struct KernelThenFormula {
  K kernel;
  F f;

  template <class T>
  void operator()(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) const {
    kernels::parallel_for(n, Vectorized<F>::kCost, [=, this](int64_t i, int64_t end) {
      constexpr int64_t block = 1024;
      T results[block];
      for (; i < end; i += block) {
        const int64_t count = std::min(block, end - i);
        kernel(b + i * b_step, results, b_step == 0 ? 1 : count);
        Vectorized{f}(a + i * a_step, a_step, static_cast<const T*>(results), b_step, y + i, count);
      }
    });
  }
};
template <class K, class F>
KernelThenFormula(K, F) -> KernelThenFormula<K, F>;

}  // namespace onestep::ops
