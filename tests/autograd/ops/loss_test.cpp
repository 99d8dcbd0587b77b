#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "autograd/node.h"
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

namespace {

/// Loss and gradient of logits 3 x whose last handle is given, but for what `keep` makes of it.
struct Trained {
  explicit Trained(const Tensor& values, const std::function<Tensor(const Tensor&)>& keep = {}) {
    Tensor x = values.detach().requires_grad_();
    Tensor logits = x * 3.0;
    if (keep) kept = keep(logits);
    const void* const memory = logits.data_ptr();
    const Tensor target = remainder(arange(values.size(0)), values.size(1));
    loss = cross_entropy(std::move(logits), target, {.ignore_index = 1, .label_smoothing = 0.1});
    const Tensor& exps = loss.node()->saved[0].tensor;
    takes = exps.data_ptr() == memory;
    loss.backward();
    grad = x.grad();
    loss = loss.detach();
  }
  Tensor kept, loss, grad;
  bool takes = false;
};

}  // namespace

TEST_CASE("cross_entropy: takes the memory of logits that nobody else sees and gives the same bits") {
  Generator generator(6);
  const Tensor values = randn({7, 5}, generator), logits = values * 3.0;
  const Trained last(values);
  CHECK(last.takes);
  const std::vector<std::function<Tensor(const Tensor&)>> holders{
      [](const Tensor& x) { return x; }, [](const Tensor& x) { return x.detach(); },
      [](const Tensor& x) { return x.view({-1}); }, [](const Tensor& x) { return x.select(0, 2); }};
  for (const auto& hold : holders) {
    const Trained held(values, hold);
    CHECK_FALSE(held.takes);
    CHECK(equal(held.kept.detach(), hold(logits)));
    CHECK(equal(held.loss, last.loss));
    CHECK(equal(held.grad, last.grad));
  }
}

TEST_CASE("cross_entropy: logits in the memory of somebody else stay as they are") {
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  const auto of_memory = [&] {
    const auto storage = std::make_shared<Storage>(memory.data(), int64_t{24}, std::make_shared<int>());
    return Tensor(storage, DType::float32, {2, 3}, {3, 1}, 0).requires_grad_();
  };
  cross_entropy(of_memory(), tensor({0, 2})).backward();
  CHECK(memory == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("cross_entropy: the gradient takes the memory of the exps in the last pass alone") {
  Generator generator(7);
  const Tensor values = randn({4, 6}, generator), target = tensor({0, 5, 2, 2});
  Tensor once = values.detach().requires_grad_(), twice = values.detach().requires_grad_();
  cross_entropy(once * 1.0, target).backward();
  const Tensor loss = cross_entropy(twice * 1.0, target);
  loss.backward({}, /*retain_graph=*/true);
  CHECK(equal(twice.grad(), once.grad()));
  loss.backward();
  CHECK(equal(twice.grad(), once.grad() * 2.0));
}

}  // namespace onestep
