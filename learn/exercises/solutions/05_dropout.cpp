#include "learn/exercises/tasks.h"

namespace exercises {

Tensor drop(const Tensor& x, double p, bool training, Generator& generator) {
  if (!training) return x;
  const Tensor dropout_mask = lt(rand(x.shape(), generator, DType::float64), 1 - p);
  return where(dropout_mask, x / (1 - p), zeros_like(x));
}

}  // namespace exercises
