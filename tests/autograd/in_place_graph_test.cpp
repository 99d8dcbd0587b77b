// What in-place changes do to the graph around them: tensors that share the memory, retained gradients, leaves that are gone.
#include <doctest/doctest.h>

#include <functional>

#include "autograd/node.h"
#include "autograd/ops.h"

namespace onestep {
namespace {

using Floats = std::vector<float>;

Floats grad_of(const Tensor& x) { return x.grad().to_vector<float>(); }

}  // namespace

TEST_CASE("in place: a write to a view moves its base, and a write to the base its views") {
  const Tensor x = ones({2}).requires_grad_();
  Tensor y = x * 2, first = y[0];
  mul_(first, 3);
  CHECK(y.to_vector<float>() == Floats{6, 2});
  y.backward(ones({2}), /*retain_graph=*/true);
  CHECK(grad_of(x) == Floats{6, 2});
  first.backward();
  CHECK(grad_of(x) == Floats{12, 2});

  const Tensor w = ones({2}).requires_grad_();
  Tensor z = zeros({2, 2}), column = transpose(z, 0, 1)[1], row = z[1];
  CHECK_FALSE(row.requires_grad());
  copy_(column, w * 3);
  mul_(z, 2);
  CHECK(row.to_vector<float>() == Floats{0, 6});
  CHECK(row.requires_grad());
  sum(row).backward({}, /*retain_graph=*/true);
  CHECK(grad_of(w) == Floats{0, 6});
  sum(column * column).backward();
  CHECK(grad_of(w) == Floats{72, 78});
}

TEST_CASE("in place: a view that was changed without being recorded is still one") {
  Tensor factor = full({2}, 3.0).requires_grad_();
  const Tensor half = full({2}, 0.5);
  const std::function<void(const Tensor&)> changes[] = {
      [](const Tensor& v) { exp_(v); },
      [](const Tensor& v) { clamp_(v, -1, 1); },
      [&](const Tensor& v) { lerp_(v, half, 0.5); },
      [&](const Tensor& v) { add_product_(v, half, half, 2); },
      [](const Tensor& v) { add_(v, 1); },
      [](const Tensor& v) { fill_(v, 2); },
  };
  for (const auto& change : changes) {
    const Tensor base = ones({4}), view = base.slice(0, 1, 3);
    change(view);
    const Floats before = view.to_vector<float>();
    mul_(view, factor);
    REQUIRE(base.requires_grad());
    factor.zero_grad();
    base.backward(ones({4}));
    CHECK(grad_of(factor) == before);
  }
}

// The gradients are those of PyTorch 2.13.
TEST_CASE("in place: writes to a base after a write to its view") {
  const Tensor mask = tensor({true, false, true});
  const auto gradient_after = [&](auto write) {
    const Tensor w = ones({3}).requires_grad_();
    Tensor x = zeros({3}), v = x.view({3});
    add_(v, w);
    write(x, w);
    sum(v).backward();
    return w.grad().defined() ? grad_of(w) : Floats{};
  };
  CHECK(gradient_after([](Tensor& x, const Tensor&) { fill_(x, 0); }) == Floats{0, 0, 0});
  CHECK(gradient_after([](Tensor& x, const Tensor&) { mul_(x, 2); }) == Floats{2, 2, 2});
  CHECK(gradient_after([](Tensor& x, const Tensor&) { add_(x, ones({3})); }) == Floats{1, 1, 1});
  CHECK(gradient_after([](Tensor& x, const Tensor& w) { add_(x, w); }) == Floats{2, 2, 2});
  CHECK(gradient_after([](Tensor& x, const Tensor&) { copy_(x, ones({3})); }) == Floats{0, 0, 0});
  CHECK(gradient_after([&](Tensor& x, const Tensor&) { masked_fill_(x, mask, 0); }) == Floats{0, 1, 0});
  Tensor x = ones({3}).requires_grad_() * 1;
  CHECK_THROWS_AS(x.view({3}).mutable_data<float>(), GradError);
}

TEST_CASE("in place: what is read through the base of a written view has its gradient") {
  const Tensor w = ones({3}).requires_grad_();
  Tensor x = zeros({3}), v = x.view({3}), y = zeros({3});
  add_(v, w);
  copy_(y, x);
  CHECK(y.requires_grad());
  add_(y, x);
  sum(y).backward();
  CHECK(grad_of(w) == Floats{2, 2, 2});
  CHECK_FALSE(x.is_leaf());
  Tensor whole = zeros({3}, DType::int64);
  copy_(whole, x);  // integers have no gradient to lose
  CHECK(whole.to_vector<float>() == Floats{1, 1, 1});
}

TEST_CASE("in place: a row of a result is written to, and the result has its gradient") {
  const Tensor w = ones({3}).requires_grad_();
  for (const Tensor& x : {softmax(zeros({2, 3}), 1), log_softmax(zeros({2, 3}), 1), softmax(zeros({2, 3}), 0),
                          sum(zeros({2, 2, 3}), 1), (w * ones({2, 3})).detach()}) {
    Tensor row = x[0];
    copy_(row, w * 1);
    sum(x * 2).backward();
  }
  CHECK(grad_of(w) == Floats{10, 10, 10});
}

TEST_CASE("in place: several views from one op, and views of leaves, are not written to while recording") {
  const Tensor w = ones({2}).requires_grad_(), leaf = zeros({4}).requires_grad_();
  const std::vector<Tensor> halves = split(zeros({4}), 2);
  CHECK_THROWS_WITH_AS(
      add_(halves[0], w),
      "add_: a view of shape [2] that is one of several from one op cannot be changed in place while recording "
      "(clone it first)",
      GradError);
  add_(halves[0], ones({2}));  // nothing to record
  CHECK_THROWS_AS(mul_(leaf.slice(0, 0, 2), 2), GradError);
  const NoGradGuard no_grad;
  add_(halves[0], w);
  mul_(leaf.slice(0, 0, 2), 2);
}

TEST_CASE("in place: a write to a view serves one pass and no expanded tensor") {
  const Tensor w = ones({2}).requires_grad_(), x = zeros({4}), expanded = expand(zeros({3}), {2, 3}).detach();
  add_(x.slice(0, 0, 2), w);
  x.backward(ones({4}));
  CHECK_THROWS_AS(x.backward(ones({4})), GradError);
  const Tensor none = expanded.slice(0, 0, 0);
  add_(none, expand(ones({1, 1}).requires_grad_(), {0, 3}));
  CHECK_THROWS_WITH_AS(none.backward(zeros({0, 3})),
                       "copy_slices: no gradient of shape [2, 3] passes a write to an expanded tensor: its elements share "
                       "memory (clone it first)",
                       GradError);
}

TEST_CASE("in place: a leaf that has become the result of an op is refused where a pass reaches it as a leaf") {
  Tensor x = ones({2}).requires_grad_();
  const Tensor y = x * 3;
  x.requires_grad_(false);
  add_(x, 1);
  y.backward(ones({2}), /*retain_graph=*/true);  // nothing is recorded: it collects nothing, as any that has stopped
  add_(x, ones({2}).requires_grad_());
  CHECK_THROWS_WITH_AS(y.backward(ones({2})),
                       "backward: a leaf of shape [2] has become the result of an in-place op, after requires_grad_(false) "
                       "(clone it before the op)",
                       GradError);
}

TEST_CASE("in place: a view taken before its base requires grad passes its gradient on") {
  Tensor x = zeros({3});
  const Tensor v = x.slice(0, 0, 2);
  x.requires_grad_();
  sum(v * 3).backward();
  CHECK(grad_of(x) == Floats{3, 3, 0});
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
  add_(y, ones({3}));  // continues with what it has
  CHECK(grad_of(y) == Floats{1, 1, 1});
  sum(y).backward({}, /*retain_graph=*/true);
  CHECK(grad_of(y) == Floats{2, 2, 2});
  Tensor v = y.view({3});
  mul_(v, 2);
  CHECK(grad_of(y) == Floats{2, 2, 2});
  sum(y * 3).backward();
  CHECK(grad_of(y) == Floats{5, 5, 5});
}

TEST_CASE("in place: a write to all of x by index is one to x itself") {
  const auto retained = [](const Slice& rows) {
    const Tensor x = ones({3}).requires_grad_(), w = ones({3}).requires_grad_();
    Tensor y = x * 2;
    y.retain_grad();
    index_put_(y, {rows}, (w * 3).index({rows}));
    sum(y * 5).backward();
    return std::vector<Floats>{y.grad().defined() ? grad_of(y) : Floats{}, grad_of(w), grad_of(x)};
  };
  CHECK(retained(Slice()) == std::vector<Floats>{{5, 5, 5}, {15, 15, 15}, {0, 0, 0}});  // PyTorch 2.13
  CHECK(retained(Slice(0, 3)) == std::vector<Floats>{{5, 5, 5}, {15, 15, 15}, {0, 0, 0}});
}

TEST_CASE("in place: what was detached as a leaf leaves its memory to recorded ops") {
  const Tensor w = ones({3}).requires_grad_();
  Tensor x = zeros({3});
  const Tensor leaf = x.detach().requires_grad_();
  add_(x, w);
  CHECK(x.requires_grad());
  CHECK(leaf.is_leaf());
  CHECK(leaf.to_vector<float>() == Floats{1, 1, 1});

  Tensor kept;  // a graph may outlive the values of its leaf
  {
    const Tensor gone = ones({3}).requires_grad_();
    kept = sum(gone);
  }
  kept.backward();

  Tensor weight = ones({3}).requires_grad_();
  const Tensor used = sum(weight * 2);  // the graph keeps the leaf's node
  weight.requires_grad_(false);
  add_(weight, w);
  CHECK(weight.requires_grad());
}

TEST_CASE("in place: a view of any strides gives its gradient to the elements of its base") {
  const Tensor x = ones({2, 3}).requires_grad_();
  const Tensor y = transpose(x * 1, 0, 1);  // a base that is not in rows
  sum(as_strided(y, {2, 2}, {1, 2}, 1) * tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2})).backward();
  CHECK(grad_of(x) == Floats{0, 1, 3, 2, 4, 0});
  const Tensor z = ones({3}).requires_grad_();
  sum(as_strided(z * 1, {2, 2}, {1, 1}) * tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2})).backward();  // overlapping
  CHECK(grad_of(z) == Floats{1, 5, 4});
}

}  // namespace onestep
