#pragma once
// Computations on tensors beside one another.
#include <cstdint>
#include <functional>

namespace onestep {

/// Calls f(i) for i < n, in any order and divided among the threads where that is worth it: `cost` is the rough nanoseconds of
/// one call, whose ops then use one thread. For short computations that have nothing to do with each other, record nothing and
/// draw nothing. Long ones, whose ops use several threads themselves, and those under autocast, which is the calling thread's
/// alone, run one after the other. Where f throws, so does this (as at::parallel_for).
void parallel_calls(int64_t n, double cost, const std::function<void(int64_t)>& f);

}  // namespace onestep
