// Exercise 5: dropout (section 3.5.2)
//
// In training each element is set to 0 with probability p. The others are multiplied by 1 / (1 - p), so that the average
// stays what it was and evaluation, which drops nothing, needs no correction.
//
// PyTorch draws one number an element, uniform in [0, 1), and keeps the element if the number is less than 1 - p. Drawn in
// the same way your zeros are in the same places as the book's.
#include "learn/exercises/tasks.h"

namespace exercises {

Tensor drop(const Tensor& x, double p, bool training, Generator& generator) {
  const Tensor dropout_mask = lt(rand(x.shape(), generator, DType::float64), 1 - p);  // bool
  // GAP: two things are missing.
  (void)training;
  return where(dropout_mask, x, zeros_like(x));
}

}  // namespace exercises
