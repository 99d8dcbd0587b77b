#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"

namespace onestep {

TEST_CASE("cross_entropy: without a counted target the mean is NaN and the gradient 0") {
  Tensor x = randn({2, 3}).requires_grad_();
  const Tensor loss = cross_entropy(x, tensor({-100, -100}));
  CHECK(std::isnan(loss.item()));
  loss.backward();
  CHECK(equal(x.grad(), zeros({2, 3})));
  CHECK(cross_entropy(x, tensor({-100, -100}), {.reduction = Reduction::sum}).item() == 0);
  CHECK(std::isnan(cross_entropy(zeros({0, 3}), zeros(0, DType::int64)).item()));
}

TEST_CASE("cross_entropy: a small loss keeps its digits beside large logits") {
  const Tensor x = tensor({{1000.0, 990.0, -1000.0}, {-1000.0, 0.0, 16.0}});
  const Tensor losses = cross_entropy(x, tensor({0, 2}), {.reduction = Reduction::none});
  CHECK(losses.at({0}) == doctest::Approx(std::log1p(std::exp(-10.0))).epsilon(1e-3));
  CHECK(losses.at({1}) == doctest::Approx(std::log1p(std::exp(-16.0))).epsilon(0.1));
}

TEST_CASE("cross_entropy: equal to log_softmax and nll_loss") {
  Generator generator(4);
  const Tensor logits = randn({3, 7, 2}, generator), target = randint(0, 7, {3, 2}, generator);
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    Tensor a = logits.detach().requires_grad_(), b = logits.detach().requires_grad_();
    const Tensor fused = cross_entropy(a, target, {.reduction = reduction, .ignore_index = 2});
    const Tensor steps = nll_loss(log_softmax(b, 1), target, reduction, 2);
    CHECK(allclose(fused, steps, 1e-6, 1e-6));
    fused.backward(ones(fused.shape()));
    steps.backward(ones(steps.shape()));
    CHECK(allclose(a.grad(), b.grad(), 1e-6, 1e-6));
  }
}

TEST_CASE("cross_entropy: infinite logits as in PyTorch") {
  const Tensor x = tensor({{-INFINITY, 1.0, 2.0}, {-INFINITY, 1.0, 1.0}});
  const Tensor losses = cross_entropy(x, tensor({0, 1}), {.reduction = Reduction::none});
  CHECK(losses.at({0}) == INFINITY);
  CHECK(losses.at({1}) == doctest::Approx(std::log(2.0)));
}

}  // namespace onestep
