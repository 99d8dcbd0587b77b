// Exercise 7: softmax's backward rule
//
// `record` enters an op into the graph: its name, result, inputs, the tensors that its rule will need, and the rule. When the
// backward pass arrives, the rule gets dy, the gradient of the loss with respect to y = softmax(x), and returns that with
// respect to x. Since every y_j depends on every x_i of its row,
//   dy_j / dx_i = y_j (1 - y_i) for i = j, and -y_j y_i for the others;
//   dx_i = sum_j dy_j * (dy_j / dx_i)
// which is a short formula once it is summed up.
#include "learn/exercises/tasks.h"

namespace exercises {

Tensor recorded_softmax(const Tensor& x) {
  const Tensor y = softmax(x.detach(), -1);
  return record("recorded_softmax", y, {x}, /*saved=*/{y}, [](const Backward& b) -> Grads {
    const Tensor& saved_y = b.saved(0);
    const Tensor& dy = b.grad();
    // GAP: as if y_i depended on x_i alone and its derivative were y_i.
    return {saved_y * dy};
  });
}

}  // namespace exercises
