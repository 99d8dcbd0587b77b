// Exercise 1: the context of one token (section 3.3.1)
//
// A token's context is a weighted sum of all tokens; those that resemble it most have the largest weights:
//   scores  [T]  the dot product of each token with the query
//   weights [T]  softmax of the scores: positive, and their sum is 1
//   context [d]  the sum of all tokens, each times its weight
#include "learn/exercises/tasks.h"

namespace exercises {

Tensor context_of(const Tensor& inputs, int64_t query) {
  // GAP: here every token has the same weight, whatever it is. Make weights of the scores with inputs[query].
  const Tensor weights = full({inputs.size(0)}, 1.0 / static_cast<double>(inputs.size(0)));
  (void)query;
  return matmul(weights, inputs);
}

}  // namespace exercises
