#include "learn/exercises/checks/check.h"
#include "nn/linear.h"

namespace exercises {
namespace {

/// A model and its optimizer, the same each time. Plain gradient descent: Adam would hide a wrong scale.
struct Learner {
  Generator generator{1};
  nn::Linear model{3, 2, true, generator};
  optim::SGD optimizer{model.parameters(), {.lr = 0.1}};

  double step(const std::vector<MicroBatch>& batches) { return accumulated_step(model, batches, optimizer); }
  /// One step on the gradients of sum_i weights[i] * loss_i.
  double weighted_step(const std::vector<MicroBatch>& batches, const std::vector<double>& weights, bool forget = true) {
    if (forget) optimizer.zero_grad();
    double total = 0;
    for (size_t i = 0; i < batches.size(); ++i) {
      const Tensor loss = mse_loss(model(batches[i].x), batches[i].target) * weights[i];
      loss.backward();
      total += loss.item();
    }
    optimizer.step();
    return total;
  }
  Tensor parameters() const { return cat({model.weight.detach().flatten(), model.bias.detach()}); }
};

std::vector<MicroBatch> batches_of(const std::vector<int64_t>& sizes) {
  std::vector<MicroBatch> batches;
  Generator generator(2);
  for (const int64_t rows : sizes) batches.push_back({randn({rows, 3}, generator), randn({rows, 2}, generator)});
  return batches;
}

/// The parameters after weighted steps, one for each list of weights.
Tensor after(const std::vector<MicroBatch>& batches, const std::vector<std::vector<double>>& steps, bool forget = true) {
  Learner learner;
  for (const auto& weights : steps) learner.weighted_step(batches, weights, forget);
  return learner.parameters();
}

void check_equal_sizes() {
  const auto batches = batches_of({4, 4});
  Learner learner;
  learner.step(batches);
  require_close(
      learner.parameters(), after(batches, {{0.5, 0.5}}),
      {{Learner().parameters(), "no parameter has changed: did optimizer.step() run, with gradients there?"},
       {after(batches, {{0, 1}}),
        "only the last micro-batch counts: zero_grad() inside the loop clears the gradients of the others"},
       {after(batches, {{0, 0.5}}),
        "only the last micro-batch counts: zero_grad() inside the loop clears the gradients of the others"},
       {after(batches, {{1, 1}}),
        "the step is too large: the losses of the micro-batches are added, but the loss of the batch is their mean"}});
}

void check_other_sizes() {
  const auto batches = batches_of({6, 2, 1});
  Learner learner;
  learner.step(batches);
  const double third = 1.0 / 3;
  require_close(learner.parameters(), after(batches, {{6.0 / 9, 2.0 / 9, 1.0 / 9}}),
                {{after(batches, {{third, third, third}}),
                  "every micro-batch has the same weight: one of 6 rows should have 6 times the weight of one of 1 row"}});
}

void check_two_steps() {
  const auto batches = batches_of({4, 4});
  const std::vector<std::vector<double>> steps{{0.5, 0.5}, {0.5, 0.5}};
  Learner learner;
  learner.step(batches);
  learner.step(batches);
  require_close(learner.parameters(), after(batches, steps),
                {{after(batches, steps, /*forget=*/false),
                  "the second step still has the gradients of the first: zero_grad() is needed once a step"}});
}

void check_loss() {
  const auto batches = batches_of({6, 2});
  Learner yours, reference;
  require_close(tensor(yours.step(batches)), tensor(reference.weighted_step(batches, {0.75, 0.25})),
                {{tensor(Learner().weighted_step(batches, {1, 1})),
                  "the sum of the losses is returned: it should be the mean over all rows"},
                 {tensor(Learner().weighted_step(batches, {0.5, 0.5})),
                  "the unweighted mean of the losses is returned: weight a micro-batch by its rows"}});
}

const Register registered{{"09_gradient_accumulation",
                           "one step on more data than fits",
                           "zero_grad() once, before the loop; multiply each loss by its share of the rows before backward()",
                           {{"two micro-batches of the same size", check_equal_sizes},
                            {"micro-batches of different sizes", check_other_sizes},
                            {"the second step starts from cleared gradients", check_two_steps},
                            {"the loss that is returned", check_loss}}}};

}  // namespace
}  // namespace exercises
