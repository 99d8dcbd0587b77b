#include "learn/exercises/checks/check.h"

namespace exercises {
namespace {

Tensor dropped(const Tensor& x, double p, bool training = true) {
  Generator generator(123);
  return drop(x, p, training, generator);
}

/// The elements whose draw is below `bound`, times `scale`.
Tensor with_mask(const Tensor& x, double bound, double scale) {
  Generator generator(123);
  return where(lt(rand(x.shape(), generator, DType::float64), bound), x * scale, zeros_like(x));
}

void check_scale() {
  const Tensor x = random_leaf({5, 8}, 1).detach();
  require_close(dropped(x, 0.2), with_mask(x, 0.8, 1 / 0.8),
                {{with_mask(x, 0.8, 1), "what is not dropped is not multiplied by 1 / (1 - p)"},
                 {with_mask(x, 0.8, 0.8), "what is not dropped becomes smaller: it is multiplied by 1 - p, not divided by it"},
                 {with_mask(x, 0.8, 1 / 0.2), "what is not dropped is divided by p: it should be 1 - p"},
                 {with_mask(x, 0.8, 2), "what is not dropped is doubled, which is right for p = 0.5 only"},
                 {with_mask(x, 0.2, 1 / 0.8), "a fraction p is kept: it should be 1 - p"},
                 {with_mask(x, 0.2, 1 / 0.2), "a fraction p is kept: it should be 1 - p"}});
}

void check_evaluation() {
  const Tensor x = random_leaf({5, 8}, 1).detach();
  const Tensor yours = dropped(x, 0.2, /*training=*/false);
  require(!any(eq(yours, 0.0)).item<bool>(), "something is dropped in evaluation: with training = false x has to come back");
  require_close(yours, x, {{x / 0.8, "in evaluation x comes back scaled: nothing was dropped, so nothing is to be scaled"}});
}

const Register registered{
    {"05_dropout",
     "dropout",
     "a tensor can be divided by a number; evaluation can return before anything is drawn",
     {{"p = 0.2 keeps about 4 of 5 elements, larger than they were", check_scale},
      {"the mask of the book for p = 0.5",
       [] {
         require_printed(dropped(ones({6, 6}), 0.5), "dropout_ones");
       }},
      {"nothing happens in evaluation", check_evaluation},
      {"gradients", [] {
         require_gradients([](const std::vector<Tensor>& in) { return dropped(in[0], 0.3); }, {random_leaf({4, 4}, 1)}, {"x"});
       }}}}};

}  // namespace
}  // namespace exercises
