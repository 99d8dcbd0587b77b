// Gradients as values: grad(), recorded passes, hooks, modes of recording.
#include "autograd/grad.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "autograd/memory.h"
#include "autograd/node.h"
#include "autograd/ops.h"

namespace onestep {
namespace {

using Doubles = std::vector<double>;

Tensor leaf(const std::vector<double>& values) {
  return from_values(values, static_cast<int64_t>(values.size())).requires_grad_();
}
Doubles values(const Tensor& x) { return x.to_vector<double>(); }

}  // namespace

TEST_CASE("backward: a gradient that a rule made is kept, and copied where others see its memory or it is part of more") {
  const Tensor x = zeros({256, 256}).requires_grad_(), dy = ones({256, 256});
  const auto peak_of = [&](const Tensor& y, const Tensor& grad) {
    memory::reset_peak();
    const int64_t before = memory::stats().live_bytes;
    y.backward(grad);
    return memory::stats().peak_bytes - before;
  };
  CHECK(peak_of(nll_loss(x, zeros(256, DType::int64)), {}) < 300'000);  // a rule that ends with a view: one tensor of 262,144
  const int64_t of_x = memory::stats().live_bytes;
  permute(x, {1, 0}).backward(dy);
  CHECK_FALSE(x.grad().shares_storage(dy));
  CHECK(memory::stats().live_bytes == of_x);
  const Tensor part = zeros({1, 256}).requires_grad_();
  cat({part, zeros({255, 256})}).backward(dy);
  CHECK_FALSE(part.grad().shares_storage(dy));
}

TEST_CASE("grad: gradients of leaves and of results, without touching grad()") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4}), unused = leaf({1});
  const Tensor y = mul(x, w), z = sum(mul(y, y));
  const std::vector<Tensor> grads = autograd::grad({z}, {x, y}, {}, {.retain_graph = true});
  CHECK(values(grads[0]) == Doubles{18, 64});
  CHECK(values(grads[1]) == Doubles{6, 16});
  CHECK_FALSE(x.grad().defined());
  CHECK_FALSE(w.grad().defined());
  CHECK_FALSE(grads[0].requires_grad());
  CHECK_THROWS_WITH_AS(
      autograd::grad({z}, {unused}, {}, {.retain_graph = true}),
      "grad: an input of shape [1] has no influence on the outputs (set allow_unused to get an undefined gradient)", GradError);
  CHECK_FALSE(autograd::grad({z}, {unused}, {}, {.retain_graph = true, .allow_unused = true})[0].defined());
  CHECK(values(autograd::grad({z}, {unused}, {}, {.retain_graph = true, .materialize_grads = true})[0]) == Doubles{0});
  CHECK_THROWS_AS(autograd::grad({z}, {ones({2})}), GradError);
  const Tensor weights = tensor({1.0, 10.0}, DType::float64);
  CHECK(values(autograd::grad({y, z}, {w}, {weights, {}})[0]) == Doubles{1 + 6, 20 + 32});
  CHECK_THROWS_AS(autograd::grad({z}, {w}), GradError);  // used up
}

TEST_CASE("grad: recordable gradients have the bits of recorded ones and no graph") {
  const Tensor x = leaf({0.3, -1.2, 2.5}), w = leaf({0.7, 1.1, -0.4});
  const Tensor y = softmax(erf(mul(x, w)), 0) * layer_norm(x, {3}, w, {});
  const Tensor weights = tensor({1.0, -0.25, 3.0}, DType::float64);
  const auto recorded = autograd::grad({y}, {x, w}, {weights}, {.retain_graph = true, .create_graph = true});
  const auto plain = autograd::grad({y}, {x, w}, {weights}, {.retain_graph = true, .recordable = true});
  for (size_t i = 0; i < 2; ++i) {
    CHECK(values(plain[i]) == values(recorded[i]));
    CHECK(recorded[i].requires_grad());
    CHECK_FALSE(plain[i].requires_grad());
  }
  const auto used = autograd::grad({y}, {x}, {weights}, {.recordable = true});
  CHECK(values(used[0]) == values(recorded[0]));
  CHECK_THROWS_AS(autograd::grad({y}, {x}, {weights}), GradError);  // the graph is used up
}

TEST_CASE("grad: of a gradient, as often as one likes") {
  const Tensor x = leaf({0.5, 2});
  Tensor y = sum(x * x * x * x);
  const double factor[] = {4, 12, 24, 24};
  for (int order = 0; order < 4; ++order) {
    y = autograd::grad({order == 0 ? y : sum(y)}, {x}, {}, {.create_graph = true})[0];
    CHECK(values(y)[0] == doctest::Approx(factor[order] * std::pow(0.5, 3 - order)));
    CHECK(values(y)[1] == doctest::Approx(factor[order] * std::pow(2, 3 - order)));
  }
}

TEST_CASE("grad: backward with create_graph gives gradients that have a gradient") {
  const Tensor x = leaf({1, 2, 3});
  Tensor y = exp(x);
  sum(y * y).backward({}, {}, /*create_graph=*/true);
  const Tensor first = x.grad();
  CHECK(first.requires_grad());
  const Tensor second = autograd::grad({sum(first)}, {x})[0];
  for (size_t i = 0; i < 3; ++i) CHECK(values(second)[i] == doctest::Approx(4 * std::exp(2.0 * (1 + static_cast<double>(i)))));
  Tensor(x).zero_grad();  // the gradient holds the graph, and that the leaf
}

TEST_CASE("grad: through views, writes to views and broadcasts, twice") {
  const Tensor x = leaf({1, 2}), w = leaf({3});
  Tensor y = zeros({2, 2}, DType::float64);
  copy_(y[0], x * x);
  mul_(transpose(y, 0, 1)[1], w);
  const Tensor loss = sum(y * y);  // x0^4 + x1^4 w^2
  const std::vector<Tensor> grads = autograd::grad({loss}, {x, w}, {}, {.create_graph = true});
  CHECK(values(grads[0]) == Doubles{4, 4 * 8 * 9});
  CHECK(values(grads[1]) == Doubles{2 * 16 * 3});
  CHECK(values(autograd::grad({sum(grads[0])}, {x, w})[0]) == Doubles{12, 12 * 4 * 9});
}

TEST_CASE("grad: backward into chosen inputs") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor y = mul(x, w);
  sum(mul(y, y)).backward({}, {}, false, {x, y});
  CHECK(values(x.grad()) == Doubles{18, 64});
  CHECK(values(y.grad()) == Doubles{6, 16});
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("grad: hooks see a gradient, may change it, and can be removed") {
  Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  int seen = 0, collected = 0;
  HookHandle count = y.register_hook([&](const Tensor& grad) {
    return ++seen, CHECK(values(grad) == Doubles{1, 1}), Tensor();
  });
  HookHandle twice = y.register_hook([](const Tensor& grad) { return grad * 2; });
  x.register_post_accumulate_grad_hook([&](const Tensor& leaf) { ++collected, CHECK(leaf.grad().defined()); });
  sum(y).backward({}, /*retain_graph=*/true);
  CHECK(values(x.grad()) == Doubles{4, 4});
  count.remove();
  twice.remove();
  twice.remove();
  sum(y).backward();
  CHECK(values(x.grad()) == Doubles{6, 6});
  CHECK(seen == 1);
  CHECK(collected == 2);
  CHECK_THROWS_AS(ones({2}).register_hook([](const Tensor& g) { return g; }), GradError);
  x.register_hook([](const Tensor&) { return ones({5}); });
  CHECK_THROWS_AS(sum(x * 1).backward(), GradError);
}

TEST_CASE("grad: a pass within a pass") {
  const Tensor x = leaf({3});
  Tensor y = x * 2;
  y.register_hook([&](const Tensor& grad) {
    const EnableGradGuard recorded;
    const Tensor inner = autograd::grad({sum(x * x)}, {x})[0];
    return grad * inner;  // 6
  });
  sum(y + x).backward();  // x's gradient of the outer pass is under way while the inner one runs
  CHECK(values(x.grad()) == Doubles{13});
}

TEST_CASE("grad: modes of recording") {
  const Tensor x = leaf({1});
  {
    const NoGradGuard off;
    CHECK_FALSE((x * 2).requires_grad());
    const EnableGradGuard on;
    CHECK((x * 2).requires_grad());
  }
  set_grad_enabled(false);
  CHECK_FALSE(grad_enabled());
  set_grad_enabled(true);
  Tensor made;
  {
    const InferenceGuard inference;
    made = x * 2;
    CHECK(made.is_inference());
    mul_(made, 3);
  }
  CHECK_FALSE(made.requires_grad());
  CHECK_FALSE(x.is_inference());
  CHECK_THROWS_AS(mul(x, made), GradError);
  CHECK_THROWS_AS(mul_(made, 2), GradError);
  CHECK_THROWS_AS(Tensor(made).requires_grad_(), GradError);
  CHECK(add(x, made).requires_grad());
}

}  // namespace onestep
