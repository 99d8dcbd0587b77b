// Exercise 4: the causal mask (section 3.5.1)
//
// A model that predicts the next token must not attend to it: token i attends to the tokens 0 .. i. In the weights [T, T]
// (row = query) all that is above the diagonal has to be 0, and each row still has to sum to 1.
#include "learn/exercises/tasks.h"

namespace exercises {

Tensor causal_weights(const Tensor& scores, int64_t d_k) {
  // GAP: mask the future. Where does a score have to be changed, to what, and before or after the softmax?
  return softmax(scores / std::sqrt(static_cast<double>(d_k)), -1);
}

}  // namespace exercises
