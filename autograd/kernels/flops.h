#pragma once
// Counting the arithmetic of matrix products, for profiles.
#include <atomic>

namespace onestep::kernels {

namespace detail {
inline std::atomic<bool> counting{false};
inline std::atomic<double> flops{0};
}  // namespace detail

/// Whether products are counted from now on.
inline void count_flops(bool on) { detail::counting = on; }

/// The floating-point operations counted so far.
inline double counted_flops() { return detail::flops; }

/// Counts a product.
inline void add_flops(double flops) {
  if (detail::counting.load(std::memory_order_relaxed)) detail::flops.fetch_add(flops, std::memory_order_relaxed);
}

}  // namespace onestep::kernels
