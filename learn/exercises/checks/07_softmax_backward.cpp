#include "learn/exercises/checks/check.h"

namespace exercises {
namespace {

/// The gradient of sum(y dy) with respect to x through `softmax_of`.
Tensor gradient(Tensor (*softmax_of)(const Tensor&), const Tensor& values, const Tensor& dy) {
  Tensor x = values.clone().requires_grad_();
  softmax_of(x).backward(dy);
  return x.grad();
}

void check_rule(const Shape& shape) {
  const Tensor x = random_leaf(shape, 1).detach(), dy = random_leaf(shape, 2).detach(), y = softmax(x, -1);
  const Tensor right = gradient([](const Tensor& z) { return softmax(z, -1); }, x, dy);
  require_close(
      gradient(recorded_softmax, x, dy), right,
      {{y * dy, "raising one score lowers the weights of all others, which is the term sum(y dy): it is missing"},
       {y * (1.0 - y) * dy, "only each weight's dependence on its own score is there: the -y_j y_i of the others is missing"},
       {y * (dy - sum(y * dy)), "the sum goes over all rows: a score only changes the weights of its own row (dim -1)"},
       {y * (dy - sum(dy, {-1}, true)), "the sum is that of dy: each has to be multiplied by its y, sum(y dy)"},
       {y * (dy + sum(y * dy, {-1}, true)), "the sign of the sum is wrong: the weights of the others fall"},
       {dy - sum(y * dy, {-1}, true), "the factor y in front is missing"}});
}

const Register registered{
    {"07_softmax_backward",
     "softmax's backward rule",
     "dx_i = y_i (dy_i - sum_j y_j dy_j); the sum needs keepdim = true to be subtracted from each element of its row",
     {{"the values",
       [] {
         require_close(recorded_softmax(tensor({1.0, 2.0})), softmax(tensor({1.0, 2.0}), 0));
       }},
      {"the gradient of one row", [] { check_rule({4}); }},
      {"the gradient of a batch",
       [] {
         check_rule({2, 3, 4});
       }},
      {"gradcheck", [] {
         require_gradients([](const std::vector<Tensor>& in) { return recorded_softmax(in[0]); }, {random_leaf({2, 5}, 1)},
                           {"x"});
       }}}}};

}  // namespace
}  // namespace exercises
