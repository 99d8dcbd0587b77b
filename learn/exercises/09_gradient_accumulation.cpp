// Exercise 9: one step on more data than fits (gradient accumulation)
//
// A large batch is computed in parts (micro-batches), and the optimizer takes one step, the same step as on all of it at once:
//   loss of the batch = mean over all its rows
// backward() adds to the gradients that are there. mse_loss is the mean over its own micro-batch, and micro-batches may
// differ in their number of rows, x.size(0).
#include "learn/exercises/tasks.h"

namespace exercises {

double accumulated_step(const nn::Layer& model, const std::vector<MicroBatch>& micro_batches, optim::Optimizer& optimizer) {
  // GAP: where do the gradients have to be cleared, and what is the weight of each micro-batch?
  double total = 0;
  for (const MicroBatch& batch : micro_batches) {
    optimizer.zero_grad();
    const Tensor loss = mse_loss(model(batch.x), batch.target);
    loss.backward();
    total += loss.item();
  }
  optimizer.step();
  return total;
}

}  // namespace exercises
