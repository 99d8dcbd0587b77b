// What in-place changes do to the graph around them: tensors that share the memory, retained gradients, leaves that are gone.
#include <doctest/doctest.h>

#include "autograd/node.h"
#include "autograd/ops.h"

namespace onestep {
namespace {

using Floats = std::vector<float>;

Floats grad_of(const Tensor& x) { return x.grad().to_vector<float>(); }

}  // namespace

TEST_CASE("in place: backward refuses a tensor that shares memory with one changed in place") {
  const char* const message =
      "backward: its input of shape [2] shares memory with a tensor that was changed in place since (take the view after the "
      "change, or use the op without trailing _)";
  const Tensor x = ones({2}).requires_grad_();
  Tensor y = x * 2, first = y[0];
  mul_(first, 3);
  CHECK_THROWS_WITH_AS(y.backward(ones({2})), message, GradError);
  CHECK_FALSE(x.grad().defined());
  first.backward();
  CHECK(grad_of(x) == Floats{6, 0});

  const Tensor w = ones({1}).requires_grad_(), z = ones({1}).requires_grad_() * 2;
  Tensor same = z.view({1});
  add_(same, w);
  CHECK_THROWS_AS(z.backward(), GradError);
  CHECK_FALSE(w.grad().defined());
  same.backward();
  CHECK(grad_of(w) == Floats{1});
}

TEST_CASE("in place: a retained gradient is that of the tensor as it is now") {
  const Tensor x = ones({3}).requires_grad_();
  Tensor y = x * 2;
  y.retain_grad();
  mul_(y, 3);
  sum(y).backward({}, /*retain_graph=*/true);
  CHECK(grad_of(y) == Floats{1, 1, 1});
  CHECK(grad_of(x) == Floats{6, 6, 6});
  add_(y, ones({3}));  // goes on with what it has
  CHECK(grad_of(y) == Floats{1, 1, 1});
  sum(y).backward();
  CHECK(grad_of(y) == Floats{2, 2, 2});
}

TEST_CASE("in place: a leaf that is gone leaves its memory to recorded ops") {
  const Tensor w = ones({3}).requires_grad_();
  Tensor x = zeros({3});
  {
    Tensor leaf = x.detach().requires_grad_();
    CHECK_THROWS_AS(add_(x, w), GradError);
  }
  add_(x, w);
  CHECK(x.requires_grad());

  Tensor values = zeros({3});
  {
    const Tensor leaf = values.detach().requires_grad_(), y = leaf * leaf;
    Tensor other = values.detach().requires_grad_();
    other.requires_grad_(false);
    CHECK_THROWS_AS(add_(values, w), GradError);
  }
  add_(values, w);
  CHECK(values.requires_grad());

  Tensor kept;  // a graph may outlive the values of its leaf
  {
    const Tensor leaf = ones({3}).requires_grad_();
    kept = sum(leaf);
  }
  kept.backward();

  Tensor weight = ones({3}).requires_grad_();
  const Tensor used = sum(weight * 2);  // the graph keeps the leaf's node
  weight.requires_grad_(false);
  add_(weight, w);
  CHECK(weight.requires_grad());
}

}  // namespace onestep
