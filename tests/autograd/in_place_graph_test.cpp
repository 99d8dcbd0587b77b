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
      "backward: its input of shape [2] shares memory with a tensor that was changed in place since (use that tensor or a "
      "view of it taken after the change, or the op without trailing _)";
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

// What PyTorch 2.13 makes of the programs below stands beside them: the engine does not record them, so they must not run.
TEST_CASE("in place: a tensor whose base or view was written to before cannot be written to") {
  const Tensor w = ones({3}).requires_grad_(), mask = tensor({true, false, true});
  const auto after_write_of_view = [&](auto write) {
    Tensor x = zeros({3}), v = x.view({3});
    add_(v, w);
    CHECK_THROWS_AS(write(x), GradError);
    CHECK(x.to_vector<float>() == Floats{1, 1, 1});
    const NoGradGuard no_grad;
    write(x);  // nothing to record
  };
  after_write_of_view([](Tensor& x) { fill_(x, 0); });  // PyTorch: sum(v) has no gradient for w
  after_write_of_view([](Tensor& x) { mul_(x, 2); });   // 2
  after_write_of_view([](Tensor& x) { add_(x, ones({3})); });
  after_write_of_view([&](Tensor& x) { add_(x, w); });                // 2
  after_write_of_view([](Tensor& x) { copy_(x, ones({3})); });        // none
  after_write_of_view([&](Tensor& x) { masked_fill_(x, mask, 0); });  // 0 where the mask is true
  after_write_of_view([](Tensor& x) { x.mutable_data<float>(); });

  Tensor x = w * 1, v = x.view({3});
  fill_(x, 0);
  CHECK_THROWS_AS(fill_(v, 1), GradError);
  CHECK_THROWS_AS(v.retain_grad(), GradError);
  Tensor fresh = x.view({3});
  fill_(fresh, 1);
}

TEST_CASE("in place: a tensor whose view was written to cannot be copied or added to another") {
  const Tensor w = ones({3}).requires_grad_();
  Tensor x = zeros({3}), v = x.view({3}), y = zeros({3});
  add_(v, w);
  CHECK_THROWS_AS(copy_(y, x), GradError);  // PyTorch: y requires grad
  CHECK_THROWS_AS(add_(y, x), GradError);
  CHECK_THROWS_AS(gelu(x), GradError);
  CHECK_THROWS_AS(x.requires_grad_(), GradError);  // PyTorch: x is no leaf
  CHECK(y.to_vector<float>() == Floats{0, 0, 0});
  Tensor whole = zeros({3}, DType::int64);
  copy_(whole, x);  // integers have no gradient to lose
  CHECK(whole.to_vector<float>() == Floats{1, 1, 1});
}

TEST_CASE("in place: a row of a result is written to, and the result is refused") {
  const Tensor w = ones({3}).requires_grad_();
  for (const Tensor& x : {softmax(zeros({2, 3}), 1), log_softmax(zeros({2, 3}), 1), softmax(zeros({2, 3}), 0),
                          sum(zeros({2, 2, 3}), 1), (w * ones({2, 3})).detach()}) {
    Tensor row = x[0];
    copy_(row, w * 1);
    CHECK_THROWS_AS(x * 2, GradError);  // PyTorch: requires grad
    sum(row).backward();
  }
  CHECK(grad_of(w) == Floats{5, 5, 5});
}

TEST_CASE("in place: what is detached and what it was detached from keep their own gradients") {
  const Tensor w = ones({3}).requires_grad_();
  Tensor y = w * 2, d = y.detach(), e = y.detach();
  add_(d, w);  // PyTorch: y knows its gradient still, e has none
  sum(y * d).backward();
  CHECK(grad_of(w) == Floats{9, 9, 9});
  CHECK_FALSE((e * 2).requires_grad());
  fill_(e, 0);
  CHECK(sum(y).item() == 0);
}

TEST_CASE("in place: a view taken under NoGradGuard is written to under one") {
  const Tensor w = ones({3}).requires_grad_();
  const Tensor y = w * 2;
  Tensor v, u;
  {
    const NoGradGuard no_grad;
    v = y.view({3});
    u = (w * 2).view({3});
  }
  CHECK_THROWS_WITH_AS(fill_(v, 0),
                       "fill_: a view of shape [3] that was taken under NoGradGuard of a tensor that requires grad cannot be "
                       "changed in place while recording (wrap the change in NoGradGuard, too, or take the view outside it)",
                       GradError);
  CHECK_FALSE((v * 2).requires_grad());
  fill_(u, 0);  // the result of an op that was not recorded
  const NoGradGuard no_grad;
  fill_(v, 0);
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
  Tensor v = y.view({3});
  mul_(v, 2);
  CHECK_THROWS_AS(y.grad(), GradError);  // PyTorch: that of y as v made it
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
