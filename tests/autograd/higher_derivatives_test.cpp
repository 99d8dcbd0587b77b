// Recorded passes beyond what the op suite asks of every op (op_suite.cpp: "second derivatives").
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "autograd/grad.h"
#include "autograd/ops.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

/// The gradient of sum(f(x)^3) with respect to the floating x, one after the other.
Tensor gradient_of_cubes(const OpSample& sample, const std::vector<Tensor>& in) {
  const EnableGradGuard recorded;
  std::vector<Tensor> inputs = in, leaves;
  for (Tensor& x : inputs) {
    if (!x.is_floating()) continue;
    if (!x.requires_grad()) x = x.detach().requires_grad_();
    leaves.push_back(x);
  }
  const Tensor y = sample.forward(inputs);
  if (!y.requires_grad()) return zeros({1}, DType::float64);
  std::vector<Tensor> grads = autograd::grad({sum(y * y * y)}, leaves, {}, {.create_graph = true, .materialize_grads = true});
  for (Tensor& grad : grads) grad = reshape(grad, {grad.numel()});
  return cat(grads);
}

TEST_CASE("higher derivatives: third ones agree with finite differences") {
  for (const OpCase& op : op_cases()) {
    for (const OpSample& sample : op.samples) {
      int64_t elements = 0;
      for (const InputSpec& input : sample.inputs) elements += input.shape.numel();
      if (!sample.differentiable || !sample.twice_differentiable || elements > 64) continue;
      CAPTURE(op.op);
      CAPTURE(sample.label);
      const std::vector<Tensor> inputs = make_inputs(sample, draw_values(sample), DType::float64, true);
      const auto f = [&](const std::vector<Tensor>& in) { return gradient_of_cubes(sample, in); };
      const GradcheckResult result = gradgradcheck(f, inputs, {.full_jacobian = 0, .directions = 1});
      CHECK_MESSAGE(result.passed, result.message);
    }
  }
}

/// Which inputs the gradients of a sample depend on.
std::vector<bool> influences(const OpSample& sample, DType dtype) {
  std::vector<Tensor> leaves, found;
  const std::vector<Tensor> inputs = make_inputs(sample, draw_values(sample), dtype, true);
  for (const Tensor& x : inputs)
    if (x.requires_grad()) leaves.push_back(x);
  const Tensor y = sample.forward(inputs);
  if (!y.requires_grad()) return {};
  for (const Tensor& grad : autograd::grad({y}, leaves, {ones_like(y)}, {.create_graph = true, .allow_unused = true}))
    if (grad.defined() && grad.requires_grad()) found.push_back(sum(grad));
  if (found.empty()) return {};
  std::vector<bool> influence;
  for (const Tensor& second : autograd::grad(found, leaves, {}, {.allow_unused = true})) influence.push_back(second.defined());
  return influence;
}

TEST_CASE("higher derivatives: float32, float16 and bfloat16 lose no place in the graph that float64 has") {
  for (const OpCase& op : op_cases()) {
    for (const OpSample& sample : op.samples) {
      if (!sample.differentiable || !sample.twice_differentiable) continue;
      CAPTURE(op.op);
      CAPTURE(sample.label);
      const std::vector<bool> want = influences(sample, DType::float64);
      for (DType dtype : {DType::float32, DType::float16, DType::bfloat16}) CHECK(influences(sample, dtype) == want);
    }
  }
}

TEST_CASE("higher derivatives: keys that nothing attends to may be NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto leaf = [](const NestedValues& values) { return tensor(values, DType::float64).requires_grad_(); };
  const Tensor q = leaf({{1.0, 0.5}, {nan, nan}}), k = leaf({{0.5, 1.0}, {2.0, -1.0}, {nan, nan}}),
               v = leaf({{1.0, 2.0}, {-1.0, 0.5}, {nan, nan}});
  const Tensor mask = tensor({{true, true, false}, {false, false, false}});
  const Tensor y = scaled_dot_product_attention(q, k, v, {.mask = mask});
  const std::vector<Tensor> first = autograd::grad({sum(y * y)}, {q, k, v}, {}, {.create_graph = true});
  const std::vector<Tensor> ordinary = autograd::grad({sum(y * y)}, {q, k, v}, {}, {.retain_graph = true});
  for (size_t i = 0; i < 3; ++i) CHECK(allclose(first[i], ordinary[i], 1e-12, 1e-14));
  for (const Tensor& grad : autograd::grad({sum(first[0]) + sum(first[1]) + sum(first[2])}, {q, k, v})) {
    CHECK(all(isfinite(grad)).item<bool>());
    CHECK(equal(grad[grad.size(0) - 1], zeros({2}, DType::float64)));
  }
}

TEST_CASE("higher derivatives: sinc at 0 has the curve of its series") {
  const Tensor x = tensor({0.0, 1e-4}, DType::float64).requires_grad_();
  const Tensor first = autograd::grad({sum(sinc(x))}, {x}, {}, {.create_graph = true})[0];
  CHECK(first.to_vector<double>()[0] == 0);
  const double pi = std::acos(-1.0);
  CHECK(allclose(autograd::grad({sum(first)}, {x})[0], full({2}, -pi * pi / 3, DType::float64), 1e-6));
}

TEST_CASE("higher derivatives: a table that a head shares") {
  const Tensor table = tensor({{0.5, -1.0}, {2.0, 0.25}, {1.0, 1.5}}, DType::float64).requires_grad_();
  const auto loss = [](const std::vector<Tensor>& in) {
    const Tensor x = tanh(embedding(tensor({2, 0, 2}), in[0]));
    return cross_entropy(linear(x, in[0]), tensor({1, 2, 0}));
  };
  CHECK(gradgradcheck(loss, {table}).passed);
}

TEST_CASE("higher derivatives: a gradient penalty trains") {
  Generator generator(3);
  const Tensor x = randn({8, 3}, generator, DType::float64).requires_grad_();
  Tensor w = (randn({3, 1}, generator, DType::float64) * 2).detach().requires_grad_();
  std::vector<double> penalties;
  for (int step = 0; step < 200; ++step) {
    const Tensor slopes = autograd::grad({sum(tanh(matmul(x, w)))}, {x}, {}, {.create_graph = true})[0];
    const Tensor penalty = mean(pow(norm(slopes, 2, 1) - 0.5, 2));
    penalties.push_back(penalty.item());
    const Tensor grad = autograd::grad({penalty}, {w})[0];
    w = (w - grad * 0.5).detach().requires_grad_();
  }
  CHECK(penalties.back() < penalties.front() / 3);
}

TEST_CASE("higher derivatives: GELU's second derivative by tanh keeps its digits where the first is close to 0 and 1") {
  const auto second = [](const Tensor& values) {
    const Tensor x = values.detach().requires_grad_();
    const Tensor first = autograd::grad({sum(gelu(x, GeluApproximation::tanh))}, {x}, {}, {.create_graph = true})[0];
    return autograd::grad({sum(first)}, {x})[0];
  };
  const Tensor x = (arange(2401) - 1200) * 0.005;
  const Tensor error = abs(second(x).to(DType::float64) - second(x.to(DType::float64)));
  CHECK(max(error).item() < 5e-7);
}

TEST_CASE("higher derivatives: nothing of a graph stays behind") {
  const int64_t nodes = Node::alive();
  {
    const Tensor x = ones({2, 3}).requires_grad_();
    const Tensor y = sum(softmax(gelu(x), 1) * x);
    const Tensor first = autograd::grad({y}, {x}, {}, {.create_graph = true})[0];
    autograd::grad({sum(first)}, {x});
    CHECK(Node::alive() > nodes);
  }
  CHECK(Node::alive() == nodes);
}

}  // namespace
}  // namespace onestep
