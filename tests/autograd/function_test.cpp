// Ops of a user's own.
#include "autograd/function.h"

#include <doctest/doctest.h>

#include "autograd/grad.h"
#include "autograd/ops.h"
#include "autograd/testing/gradcheck.h"

namespace onestep {
namespace {

using autograd::Context;
using Tensors = std::vector<Tensor>;
using Doubles = std::vector<double>;

Tensor leaf(const Doubles& values) { return from_values(values, static_cast<int64_t>(values.size())).requires_grad_(); }
Doubles values(const Tensor& x) { return x.to_vector<double>(); }

struct Cube : autograd::Function<Cube> {
  static Tensors forward(Context& c, const Tensors& in) {
    c.save_for_backward({in[0]});
    return {in[0] * in[0] * in[0]};
  }
  static Tensors backward(Context& c, const Tensors& grads) {
    const Tensor x = c.saved_tensors()[0];
    return {3 * (grads[0] * (x * x))};
  }
};

/// exp, from its saved output, and x's sign as a constant.
struct ExpAndSign : autograd::Function<ExpAndSign> {
  static Tensors forward(Context& c, const Tensors& in) {
    const Tensor y = exp(in[0]), sign = to(in[0] > 0, DType::float64);
    c.save_for_backward({y});
    c.mark_non_differentiable({sign});
    return {y, sign};
  }
  static Tensors backward(Context& c, const Tensors& grads) {
    CHECK(values(grads[1]) == Doubles(static_cast<size_t>(grads[1].numel()), 0));
    return {grads[0] * c.saved_tensors()[0]};
  }
};

struct Remembering : Context {
  double factor = 0;
};
/// (a b, a + b) with a factor in a context of its own; b's gradient only where it is needed.
struct Pair : autograd::Function<Pair, Remembering> {
  static Tensors forward(Remembering& c, const Tensors& in) {
    c.factor = 5;
    c.save_for_backward({in[0], in[1]});
    return {in[0] * in[1] * c.factor, in[0] + in[1]};
  }
  static Tensors backward(Remembering& c, const Tensors& g) {
    const Tensors x = c.saved_tensors();
    return {g[0] * x[1] * c.factor + g[1], c.needs_input_grad(1) ? g[0] * x[0] * c.factor + g[1] : Tensor()};
  }
};

struct Double : autograd::Function<Double> {
  static Tensors forward(Context& c, const Tensors& in) {
    mul_(in[0], 2);
    c.mark_dirty({in[0]});
    return {in[0]};
  }
  static Tensors backward(Context&, const Tensors& grads) { return {grads[0] * 2}; }
};

/// The first derivative of an op's first output, as a function that can be differentiated.
template <class Op>
Tensor slope(const Tensor& in) {
  const EnableGradGuard recorded;
  const Tensor x = in.requires_grad() ? in : in.detach().requires_grad_();
  return autograd::grad({sum(Op::apply({x})[0])}, {x}, {}, {.create_graph = true})[0];
}

struct TooFew : autograd::Function<TooFew> {
  static Tensors forward(Context&, const Tensors& in) { return {in[0] + in[1]}; }
  static Tensors backward(Context&, const Tensors& grads) { return {grads[0]}; }
};

/// Hands on its input and a view of it; its gradients have another dtype and a larger shape.
struct HandOn : autograd::Function<HandOn> {
  static Tensors forward(Context&, const Tensors& in) { return {in[0], in[0][0], in[0] + in[1]}; }
  static Tensors backward(Context&, const Tensors& grads) {
    return {grads[2].to(DType::float64) * 3, expand(grads[2], {2, 2})};
  }
};

}  // namespace

TEST_CASE("custom op: gradients of both orders from saved inputs and outputs") {
  const Tensor x = leaf({0.5, -1, 2});
  const auto cube = [](const Tensors& in) { return Cube::apply(in)[0]; };
  CHECK(gradcheck(cube, {x}));
  CHECK(gradcheck([](const Tensors& in) { return ExpAndSign::apply(in)[0]; }, {x}));
  CHECK(gradcheck([](const Tensors& in) { return slope<Cube>(in[0]); }, {x}));
  CHECK(gradcheck([](const Tensors& in) { return slope<ExpAndSign>(in[0]); }, {x}));
  CHECK_FALSE(ExpAndSign::apply({x})[1].requires_grad());
}

TEST_CASE("custom op: several outputs, inputs that need nothing, a context of its own") {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  Tensors y = Pair::apply({a, b});
  sum(y[0] * 2 + y[1]).backward();
  CHECK(values(a.grad()) == Doubles{31, 41});
  CHECK(values(b.grad()) == Doubles{11, 21});
  y = Pair::apply({a, b.detach()});
  sum(y[1]).backward();  // the other output's gradient is zeros
  CHECK(values(a.grad()) == Doubles{32, 42});
  CHECK_FALSE(Pair::apply({a.detach(), b.detach()})[0].requires_grad());
  const NoGradGuard no_grad;
  CHECK_FALSE(Pair::apply({a, b})[0].requires_grad());
}

TEST_CASE("custom op: an input that was written to moves on in the graph") {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 3, head = y[0];
  const Tensor same = Double::apply({y})[0];
  CHECK(values(y) == Doubles{6, 12});
  sum(y * y + same).backward({}, /*retain_graph=*/true);  // 36 x^2 + 6 x
  CHECK(values(x.grad()) == Doubles{78, 150});
  head.backward();
  CHECK(values(x.grad()) == Doubles{84, 150});
}

TEST_CASE("custom op: what is freed and what is refused") {
  const int64_t nodes = Node::alive();
  {
    const Tensor x = leaf({1, 2});
    const Tensor y = sum(Cube::apply({x})[0]);
    y.backward();
    CHECK_THROWS_AS(y.backward(), GradError);
    Tensor z = x * 1;
    const Tensor late = sum(Cube::apply({z})[0]);
    add_(z, 1);
    CHECK_THROWS_AS(late.backward(), GradError);
    CHECK_THROWS_WITH_AS(sum(TooFew::apply({x, x})[0]).backward(), doctest::Contains("Function: "), GradError);
    sum(Pair::apply({x, x})[0]).backward({}, {}, /*create_graph=*/true);
    Tensor(x).zero_grad();
  }
  CHECK(Node::alive() == nodes);
}

TEST_CASE("custom op: gradients are converted and summed to their inputs") {
  const Tensor x = leaf({1, 2}).to(DType::float32).detach().requires_grad_(), one = leaf({1});
  sum(HandOn::apply({x, one})[2]).backward();
  CHECK(x.grad().dtype() == DType::float32);
  CHECK(values(x.grad().to(DType::float64)) == Doubles{3, 3});
  CHECK(values(one.grad()) == Doubles{4});
}

TEST_CASE("custom op: an output that shows an input's elements cannot be changed in place") {
  const Tensor x = leaf({1, 2}) * 1, one = leaf({1});
  Tensors y = HandOn::apply({x, one});
  CHECK_THROWS_WITH_AS(add_(y[0], 1), doctest::Contains("that a custom op returned"), GradError);
  CHECK_THROWS_AS(add_(y[1], 1), GradError);
  add_(Tensor(y[2]), 1);
  Tensor written = x;
  add_(written, 1);
  CHECK_THROWS_AS(sum(y[0]).backward(), GradError);  // which the write has changed, too
}

}  // namespace onestep
