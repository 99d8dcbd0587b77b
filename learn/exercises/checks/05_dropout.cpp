#include "learn/exercises/checks/check.h"

namespace exercises {
namespace {

Tensor dropped(const Tensor& x, double p, bool training = true) {
  Generator generator(123);
  return drop(x, p, training, generator);
}

/// The elements that `share` keeps, times `scale`.
Tensor kept(const Tensor& x, double share, double scale) {
  Generator generator(123);
  return where(lt(rand(x.shape(), generator, DType::float64), share), x * scale, zeros_like(x));
}

void check_scale() {
  const Tensor x = random_leaf({5, 8}, 1).detach();
  require_close(dropped(x, 0.2), kept(x, 0.8, 1 / 0.8),
                {{kept(x, 0.8, 1), "what is kept is not multiplied by 1 / (1 - p)"},
                 {kept(x, 0.8, 0.8), "what is kept becomes smaller: it is multiplied by 1 - p, not divided by it"},
                 {kept(x, 0.8, 1 / 0.2), "what is kept is divided by p: it should be 1 - p"},
                 {kept(x, 0.8, 2), "what is kept is doubled, which is right for p = 0.5 only"},
                 {kept(x, 0.2, 1 / 0.8), "a share p is kept: it should be 1 - p"},
                 {kept(x, 0.2, 1 / 0.2), "a share p is kept: it should be 1 - p"}});
}

void check_evaluation() {
  const Tensor x = random_leaf({5, 8}, 1).detach();
  const Tensor yours = dropped(x, 0.2, /*training=*/false);
  require(!any(eq(yours, 0.0)).item<bool>(), "something is dropped in evaluation: with training = false x has to come back");
  require_close(yours, x, {{x / 0.8, "in evaluation x comes back scaled: nothing was dropped, so nothing is made up for"}});
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
