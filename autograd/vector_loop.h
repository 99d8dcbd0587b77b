#pragma once
// Loops over formulas of many operations: the compiler makes them of the vector instructions of each instruction set, as
// kernels/simd.h does by hand. The bits are the same, because the operations are.
#include <cstdint>

// Of a function marked so there is one for each instruction set, of which the dynamic linker takes the best for the CPU. Other
// compilers and sanitizers get the one for all CPUs.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define ONESTEP_EACH_ISA [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), gnu::flatten]]
#else
#define ONESTEP_EACH_ISA
#endif

namespace onestep {

/// y[i] = f(x[i], ...). By vector instructions where f has no branches: choices between values that are both computed.
template <class F, class Y, class... X>
ONESTEP_EACH_ISA void vector_loop(const F f, Y* y, int64_t n, const X*... x) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Y>(f(x[i]...));
}

}  // namespace onestep
