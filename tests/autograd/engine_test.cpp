// The recorded graph: the recording contract, backward(), accumulation, in-place changes, lifetime.
#include <doctest/doctest.h>

#include "autograd/node.h"
#include "autograd/ops.h"

namespace onestep {
namespace {

using Doubles = std::vector<double>;

Tensor leaf(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  return from_values(values, n).requires_grad_();
}
Doubles grad_of(const Tensor& x) { return x.grad().to_vector<double>(); }

// ---- the recording contract

template <class F>
concept Recordable = requires(F rule) {
  record("op", Tensor(), {}, {}, rule);
};

struct PlainRule {
  int64_t dim;
  Grads operator()(const Backward& b) const { return {b.grad()}; }
};
struct RuleWithTensor {
  Tensor captured;
  Grads operator()(const Backward&) const { return {captured}; }
};
struct RuleWithVector {
  std::vector<int64_t> captured;
  Grads operator()(const Backward& b) const { return {b.grad()}; }
};
struct NotARule {
  Tensor operator()(const Backward& b) const { return b.grad(); }
};
static_assert(Recordable<PlainRule>);
static_assert(!Recordable<RuleWithTensor>, "a rule that owns a tensor could keep its own graph alive");
static_assert(!Recordable<RuleWithVector>);
static_assert(!Recordable<NotARule>);

TEST_CASE("engine: an op is recorded only if an input requires grad") {
  const Tensor x = leaf({1, 2}), y = tensor({3.0, 4.0}, DType::float64);
  CHECK_FALSE(mul(y, y).requires_grad());
  const Tensor z = mul(x, y);
  CHECK(z.requires_grad());
  CHECK_FALSE(z.is_leaf());
  CHECK(x.is_leaf());
  CHECK(y.is_leaf());
  CHECK_FALSE(z.detach().requires_grad());
  CHECK(z.detach().shares_storage(z));
}

TEST_CASE("engine: NoGradGuard nests and is put back by an exception") {
  const Tensor x = leaf({1, 2});
  CHECK(grad_enabled());
  {
    const NoGradGuard outer;
    {
      const NoGradGuard inner;
      CHECK_FALSE(neg(x).requires_grad());
    }
    CHECK_FALSE(grad_enabled());
    CHECK_FALSE(neg(x).requires_grad());
  }
  CHECK(neg(x).requires_grad());
  try {
    const NoGradGuard guard;
    add(x, ones({3}, DType::float64));
  } catch (const ShapeError&) {
  }
  CHECK(grad_enabled());
}

// ---- backward

TEST_CASE("engine: a value used several times collects from all of them") {
  const Tensor a = leaf({1});
  const Tensor b = add(a, a), c = add(b, b);
  c.backward();
  CHECK(grad_of(a) == Doubles{4});
  const Tensor x = leaf({2, 3});
  sum(mul(mul(x, x), x)).backward();
  CHECK(grad_of(x) == Doubles{12, 27});
}

TEST_CASE("engine: the gradient given to backward is used and not kept") {
  const Tensor x = leaf({1, 2, 3});
  Tensor seed = tensor({1.0, 10.0, 100.0}, DType::float64);
  neg(x).backward(seed);
  CHECK(grad_of(x) == Doubles{-1, -10, -100});
  const Tensor y = leaf({1, 2, 3});
  add(y, zeros({3}, DType::float64)).backward(seed);
  fill_(seed, 5);
  CHECK(grad_of(y) == Doubles{1, 10, 100});
  const Tensor z = leaf({1, 2, 3});
  z.backward(seed);
  CHECK(grad_of(z) == Doubles{5, 5, 5});
  CHECK_FALSE(z.grad().shares_storage(seed));
}

TEST_CASE("engine: gradients accumulate over backward calls until they are zeroed") {
  Tensor x = leaf({1, 2});
  CHECK_FALSE(x.grad().defined());
  sum(x).backward();
  sum(mul(x, x)).backward();
  CHECK(grad_of(x) == Doubles{3, 5});
  x.zero_grad();
  CHECK_FALSE(x.grad().defined());
  sum(neg(x)).backward();
  CHECK(grad_of(x) == Doubles{-1, -1});
  x.set_grad(tensor({10.0, 20.0}, DType::float64));
  sum(x).backward();
  CHECK(grad_of(x) == Doubles{11, 21});
}

TEST_CASE("engine: the gradients of two leaves never share memory") {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4}), c = leaf({5, 6});
  add(add(a, b), c).backward(ones({2}, DType::float64));  // the rules hand one tensor on to both inputs
  CHECK_FALSE(a.grad().shares_storage(b.grad()));
  CHECK_FALSE(b.grad().shares_storage(c.grad()));
  sum(a).backward();
  CHECK(grad_of(a) == Doubles{2, 2});
  CHECK(grad_of(b) == Doubles{1, 1});
  const Tensor x = leaf({1, 2});
  x.view({2, 1}).view({1, 2}).backward(ones({1, 2}, DType::float64));
  const Tensor grad = x.grad();
  CHECK(grad.is_contiguous());
  CHECK(grad.shape() == Shape{2});
}

TEST_CASE("engine: a leaf without a path to the loss collects nothing") {
  const Tensor x = leaf({1}), y = leaf({2});
  sum(x).backward();
  CHECK_FALSE(y.grad().defined());
  const Tensor stop = mul(x.detach(), y);
  stop.backward();
  CHECK(grad_of(x) == Doubles{1});
  CHECK(grad_of(y) == Doubles{1});
}

TEST_CASE("engine: retain_grad collects the gradient of a result") {
  const Tensor x = leaf({1, 2});
  Tensor y = mul(x, x);
  CHECK_THROWS_WITH_AS(y.grad(), "grad: the result of mul collects no gradient (call retain_grad() on it before backward)",
                       GradError);
  y.retain_grad();
  sum(add(y, y)).backward();
  CHECK(grad_of(y) == Doubles{2, 2});
  CHECK(grad_of(x) == Doubles{4, 8});
  CHECK_FALSE(y.grad().shares_storage(x.grad()));
  Tensor plain = ones({2});
  CHECK_THROWS_WITH_AS(plain.retain_grad(), "retain_grad: a tensor of shape [2] that does not require grad", GradError);
}

TEST_CASE("engine: a second backward needs retain_graph") {
  const Tensor x = leaf({1, 2});
  const Tensor y = sum(mul(x, x));
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  CHECK(grad_of(x) == Doubles{4, 8});
  CHECK_THROWS_WITH_AS(
      y.backward(),
      "mul: backward ran through this graph before and freed what it saved (pass retain_graph=true the first time)", GradError);
}

TEST_CASE("engine: misuse of backward") {
  CHECK_THROWS_WITH_AS(ones({2}).backward(),
                       "backward: a tensor of shape [2] that does not require grad (call requires_grad_() on a leaf it is "
                       "computed from, outside NoGradGuard)",
                       GradError);
  const Tensor x = leaf({1, 2});
  const Tensor y = neg(x);
  CHECK_THROWS_WITH_AS(y.backward(),
                       "backward: a tensor of shape [2] needs a gradient of that shape (or reduce it to one element first, "
                       "e.g. with sum())",
                       GradError);
  CHECK_THROWS_WITH_AS(y.backward(ones({3}, DType::float64)), "backward: gradient of shape [3] for a tensor of shape [2]",
                       ShapeError);
  CHECK_FALSE(x.grad().defined());
  y.backward(ones({2}));  // is converted from float32
  CHECK(x.grad().to_vector<double>() == std::vector<double>{-1, -1});
}

TEST_CASE("engine: misuse of requires_grad_ and set_grad") {
  CHECK_THROWS_WITH_AS(tensor({1, 2}).requires_grad_(), "requires_grad_: only floating tensors collect gradients: got int64",
                       DTypeError);
  CHECK_THROWS_WITH_AS(tensor({true}).requires_grad_(), doctest::Contains("requires_grad_: "), DTypeError);
  Tensor x = leaf({1, 2});
  Tensor y = neg(x);
  CHECK_THROWS_WITH_AS(y.requires_grad_(false), "requires_grad_: the result of neg cannot stop requiring grad (use detach())",
                       GradError);
  CHECK(y.requires_grad_().requires_grad());
  CHECK_THROWS_WITH_AS(x.set_grad(ones({3}, DType::float64)), doctest::Contains("set_grad: "), ShapeError);
  CHECK_THROWS_WITH_AS(x.set_grad(ones({2})), "set_grad: gradient of another dtype than float64", DTypeError);
  Tensor plain = ones({2});
  CHECK_FALSE(plain.grad().defined());
  plain.set_grad(ones({2}));
  CHECK(plain.grad().to_vector<double>() == std::vector<double>{1, 1});
  Tensor result = x * 2.0;
  result.set_grad(x.detach());
  sum(result).backward();
  CHECK(result.grad().to_vector<double>() == x.to_vector<double>());
  x.requires_grad_(false);
  CHECK_FALSE(x.requires_grad());
  CHECK_FALSE(neg(x).requires_grad());
  CHECK(neg(x.requires_grad_()).requires_grad());
}

TEST_CASE("engine: a rule whose gradients do not fit is refused") {
  const Tensor x = leaf({1, 2}), w = leaf({3});
  const auto with_rule = [&](auto rule) { return record("odd", zeros({2}, DType::float64), {x, w}, {}, rule); };
  const Tensor seed = ones({2}, DType::float64);
  CHECK_THROWS_WITH_AS(with_rule([](const Backward& b) -> Grads { return {b.grad()}; }).backward(seed),
                       "odd: its rule returned 1 gradients for 2 inputs", GradError);
  CHECK_THROWS_WITH_AS(with_rule([](const Backward& b) -> Grads {
                         return {b.grad(), b.grad()};
                       }).backward(seed),
                       "odd: its rule returned gradient 1 of shape [2] for an input of shape [1]", GradError);
  CHECK_THROWS_WITH_AS(with_rule([](const Backward& b) -> Grads {
                         return {b.grad().to(DType::float32), {}};
                       }).backward(seed),
                       "odd: its rule returned gradient 0 of dtype float32 for an input of dtype float64", GradError);
}

// ---- in-place changes

TEST_CASE("engine: a saved tensor that was changed in place is refused") {
  const Tensor x = leaf({1, 2});
  Tensor y = neg(x);
  const Tensor z = mul(y, y);
  masked_fill_(y, tensor({true, false}), 0);
  CHECK_THROWS_WITH_AS(z.backward(ones({2}, DType::float64)),
                       "mul: a tensor needed for its gradient was changed in place: shape [2], version 2, saved at 1 (clone it "
                       "before the change, or use the op without trailing _)",
                       GradError);
  // The same through a view, and by a plain write.
  Tensor c = tensor({3.0, 4.0}, DType::float64);
  const Tensor product = mul(x, c);
  Tensor part = c.slice(0, 0, 1);
  fill_(part, 9);
  CHECK_THROWS_AS(product.backward(ones({2}, DType::float64)), GradError);
  Tensor d = tensor({3.0, 4.0}, DType::float64);
  const Tensor other = mul(x, d);
  d.mutable_data<double>()[0] = 9;
  CHECK_THROWS_AS(other.backward(ones({2}, DType::float64)), GradError);
  // A change of what no rule saved does no harm.
  Tensor e = neg(x);
  const Tensor shifted = add(e, e);
  masked_fill_(e, tensor({true, false}), 0);
  shifted.backward(ones({2}, DType::float64));
  CHECK(grad_of(x) == Doubles{-2, -2});
}

TEST_CASE("engine: a recorded in-place op moves the tensor on in the graph") {
  const Tensor x = leaf({1, 2, 3});
  Tensor y = mul(x, tensor({2.0, 3.0, 4.0}, DType::float64));
  masked_fill_(y, tensor({false, true, false}), -1.0);
  CHECK(y.to_vector<double>() == Doubles{2, -1, 12});
  CHECK(y.requires_grad());
  sum(mul(y, y)).backward();
  CHECK(grad_of(x) == Doubles{8, 0, 96});
  // Into a tensor that required none before.
  Tensor z = zeros({3}, DType::float64);
  add_(z, x);
  CHECK(z.requires_grad());
  sum(z).backward();
  CHECK(grad_of(x) == Doubles{9, 1, 97});
}

TEST_CASE("engine: a leaf cannot be changed while recording") {
  Tensor x = leaf({1, 2});
  const Tensor mask = tensor({true, false});
  CHECK_THROWS_WITH_AS(masked_fill_(x, mask, 0),
                       "masked_fill_: a leaf that requires grad cannot be changed in place while recording (wrap the change in "
                       "NoGradGuard)",
                       GradError);
  CHECK_THROWS_AS(add_(x, x), GradError);
  CHECK_THROWS_AS(mul_(x, 2), GradError);
  CHECK_THROWS_AS(fill_(x, 2), GradError);
  CHECK_THROWS_AS(copy_(x, ones({2}, DType::float64)), GradError);
  CHECK_THROWS_WITH_AS(x.mutable_data<double>(),
                       "mutable_data: a tensor of shape [2] that requires grad cannot be written to while recording (wrap the "
                       "write in NoGradGuard)",
                       GradError);
  Tensor view = x.slice(0, 0, 1);
  CHECK_THROWS_WITH_AS(mul_(view, 2),
                       "mul_: a view of a leaf that requires grad cannot be changed in place while recording (wrap the change "
                       "in NoGradGuard, or clone the leaf first)",
                       GradError);
  CHECK(x.to_vector<double>() == Doubles{1, 2});
  {
    const NoGradGuard no_grad;
    mul_(x, 2);
    masked_fill_(x, mask, 7);
    x.mutable_data<double>()[1] += 1;
  }
  CHECK(x.to_vector<double>() == Doubles{7, 5});
  CHECK(x.requires_grad());
  CHECK(x.is_leaf());
  x.requires_grad_(false);
  mul_(x, 2);
  CHECK(x.to_vector<double>() == Doubles{14, 10});
}

TEST_CASE("engine: what shares memory with a recorded change follows it") {
  const Tensor x = leaf({1, 2, 3});
  Tensor y = neg(x);
  const Tensor before = y.slice(0, 0, 2), constant = y.detach();
  masked_fill_(y, tensor({true, false, false}), 0);
  CHECK(neg(before).to_vector<double>() == Doubles{0, 2});
  CHECK(neg(y.slice(0, 0, 2)).to_vector<double>() == Doubles{0, 2});
  CHECK(neg(constant).to_vector<double>() == Doubles{0, 2, 3});  // detaching is for the values only
  sum(before).backward();
  CHECK(grad_of(x) == Doubles{0, -1, 0});
  // The whole after a change of a part.
  Tensor whole = zeros({2}, DType::float64), part = whole.slice(0, 0, 1);
  copy_(part, x.slice(0, 0, 1));
  sum(neg(whole)).backward();
  CHECK(grad_of(x) == Doubles{-1, -1, 0});
}

// ---- lifetime

TEST_CASE("engine: a graph dies with its last tensor") {
  const int64_t nodes = Node::alive();
  {
    const Tensor x = leaf({1, 2});
    CHECK(Node::alive() == nodes + 1);
    {
      const Tensor y = sum(mul(exp(x), x));
      CHECK(Node::alive() == nodes + 4);
      y.backward();
      CHECK(Node::alive() == nodes + 4);
    }
    CHECK(Node::alive() == nodes + 1);
    Tensor y = neg(x);
    masked_fill_(y, tensor({true, false}), 0);
    y = Tensor();
    CHECK(Node::alive() == nodes + 1);
  }
  CHECK(Node::alive() == nodes);
}

TEST_CASE("engine: values live no longer than they are needed") {
  const Tensor x = leaf({1, 2});
  std::weak_ptr<Storage> unsaved, saved;
  Tensor loss;
  {
    const Tensor a = neg(x), b = exp(a), c = mul(b, x);
    unsaved = a.impl().storage;
    saved = b.impl().storage;
    loss = sum(c);
  }
  CHECK(unsaved.expired());
  CHECK_FALSE(saved.expired());
  loss.backward();
  CHECK(saved.expired());
}

TEST_CASE("engine: a rule that throws leaves nothing behind") {
  const int64_t nodes = Node::alive();
  {
    const Tensor x = leaf({1, 2});
    const auto failing = [&](const Tensor& in) {
      return record("failing", in.detach().clone(), {in}, {},
                    [](const Backward&) -> Grads { throw Error("failing: on purpose"); });
    };
    const Tensor y = mul(x, x);
    const Tensor z = sum(add(failing(y), neg(y)));  // neg's gradient of y is already waiting when the rule throws
    CHECK_THROWS_WITH_AS(z.backward(), "failing: on purpose", Error);
    CHECK_FALSE(x.grad().defined());
    CHECK(grad_enabled());
    sum(y).backward();
    CHECK(grad_of(x) == Doubles{2, 4});
  }
  CHECK(Node::alive() == nodes);
}

TEST_CASE("engine: a chain of a million ops runs backward and is freed") {
  const int64_t nodes = Node::alive();
  constexpr int kLength = 1'000'000;
  {
    const Tensor x = leaf({1.5});
    Tensor y = x;
    for (int i = 0; i < kLength; ++i) y = neg(y);
    CHECK(Node::alive() == nodes + 1 + kLength);
    y.backward();
    CHECK(grad_of(x) == Doubles{1});
  }
  CHECK(Node::alive() == nodes);
  {
    // A comb: every tooth is a leaf of its own.
    Tensor y = leaf({1});
    for (int i = 0; i < 1000; ++i) y = add(y, leaf({1}));
    y.backward();
  }
  CHECK(Node::alive() == nodes);
}

TEST_CASE("engine: a chain that doubles its paths stays linear") {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 60; ++i) y = add(y, y);  // 2^60 paths
  y.backward();
  CHECK(grad_of(x) == Doubles{0x1p60});
}

TEST_CASE("engine: one graph hangs on another") {
  const Tensor x = leaf({3});
  const Tensor shared = mul(x, x);
  const Tensor first = sum(neg(shared)), second = sum(add(shared, shared));
  first.backward({}, true);
  second.backward();
  CHECK(grad_of(x) == Doubles{-6 + 12});
  CHECK_THROWS_AS(first.backward(), GradError);
}

}  // namespace
}  // namespace onestep
