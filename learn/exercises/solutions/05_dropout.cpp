#include "learn/exercises/tasks.h"

namespace exercises {

Tensor drop(const Tensor& x, double p, bool training, Generator& generator) {
  if (!training) return x;
  const Tensor kept = lt(rand(x.shape(), generator, DType::float64), 1 - p);
  return where(kept, x / (1 - p), zeros_like(x));
}

}  // namespace exercises
