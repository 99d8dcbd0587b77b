#include "learn/exercises/tasks.h"

namespace exercises {

Tensor causal_weights(const Tensor& scores, int64_t d_k) {
  const int64_t T = scores.size(-1);
  const Tensor future = triu(ones({T, T}, DType::boolean), /*diagonal=*/1);  // true above the diagonal
  const Tensor masked = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
  return softmax(masked / std::sqrt(static_cast<double>(d_k)), -1);
}

}  // namespace exercises
