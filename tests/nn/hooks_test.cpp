#include "nn/hooks.h"

#include <doctest/doctest.h>

#include "autograd/operators.h"
#include "nn/linear.h"

namespace onestep::nn {
namespace {

using Floats = std::vector<float>;

/// y = 2 x
struct Twice : Layer {
  Tensor forward(const Tensor& x) const override { return x * 2; }
  std::string name() const override { return "Twice"; }
};

}  // namespace

TEST_CASE("hooks: forward hooks see input and output and may replace them") {
  Twice layer;
  const Tensor x = ones({2});
  LayerHookHandle pre = layer.register_forward_pre_hook([](const Layer& l, const Tensor& in) {
    CHECK(l.name() == "Twice");
    return in + 1;
  });
  LayerHookHandle post =
      layer.register_forward_hook([](const Layer&, const Tensor& in, const Tensor& out) { return in + out; });
  CHECK(layer(x).to_vector<float>() == Floats{6, 6});
  CHECK(layer.forward(x).to_vector<float>() == Floats{2, 2});
  pre.remove();
  CHECK(layer(x).to_vector<float>() == Floats{3, 3});
  post.remove();
  CHECK(layer(x).to_vector<float>() == Floats{2, 2});
}

TEST_CASE("hooks: backward hooks see the gradients of this use of the input and may replace them") {
  Twice layer;
  const Tensor x = ones({2}).requires_grad_();
  int calls = 0;
  LayerHookHandle hook = layer.register_full_backward_hook([&](const Layer&, const Tensor& in, const Tensor& out) {
    ++calls;
    CHECK(in.to_vector<float>() == Floats{6, 6});
    CHECK(out.to_vector<float>() == Floats{3, 3});
    return in * 10;
  });
  sum(layer(x) * 3 + x).backward();
  CHECK(calls == 1);
  CHECK(x.grad().to_vector<float>() == Floats{61, 61});
  hook.remove();
  layer.register_full_backward_pre_hook([](const Layer&, const Tensor& out) { return out * 2; });
  sum(layer(x)).backward();
  CHECK(x.grad().to_vector<float>() == Floats{65, 65});
}

TEST_CASE("hooks: a layer whose input needs no gradient, and one under NoGradGuard") {
  Linear layer(2, 3);
  int calls = 0;
  layer.register_full_backward_hook([&](const Layer&, const Tensor& in, const Tensor& out) {
    ++calls;
    CHECK_FALSE(in.defined());
    CHECK(out.shape() == Shape{1, 3});
    return Tensor();
  });
  sum(layer(ones({1, 2}))).backward();
  CHECK(calls == 1);
  CHECK(layer.weight.grad().defined());
  const NoGradGuard no_grad;
  CHECK_FALSE(layer(ones({1, 2})).requires_grad());
}

}  // namespace onestep::nn
