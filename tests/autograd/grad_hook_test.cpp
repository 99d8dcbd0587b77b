#include "autograd/grad_hook.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"

using namespace onestep;

namespace {

/// A leaf used twice, one used once near the end, and one that gets no gradient.
struct Graph {
  Tensor twice = from_values(std::vector<float>{0.1f, 0.7f, -3.0f}, {3}).requires_grad_();
  Tensor late = from_values(std::vector<float>{0.3f, 0.2f, 0.9f}, {3}).requires_grad_();
  Tensor loss = sum(twice * exp(twice * exp(exp(sin(sin(sin(late)))))));
};

using Floats = std::vector<float>;

}  // namespace

TEST_CASE("grad hook: gradients have the same bits and each leaf is ready once with all of its gradient") {
  Graph plain, hooked;
  plain.loss.backward();
  std::vector<const Node*> ready;
  std::vector<Floats> grads;
  {
    const GradHook hook([&](const Node& leaf) {
      ready.push_back(&leaf);
      grads.push_back(leaf.grad.to_vector<float>());
    });
    hooked.loss.backward();
  }
  CHECK(ready == std::vector<const Node*>{hooked.twice.node().get(), hooked.late.node().get()});
  CHECK(grads == std::vector<Floats>{plain.twice.grad().to_vector<float>(), plain.late.grad().to_vector<float>()});
  CHECK(hooked.twice.grad().to_vector<float>() == plain.twice.grad().to_vector<float>());
  CHECK(GradHook::active() == nullptr);
}

TEST_CASE("grad hook: a leaf is ready before the ops above it are passed") {
  const Graph graph;
  const int64_t nodes = Node::alive();
  bool late_has_grad = true;
  const GradHook hook([&](const Node& leaf) {
    if (&leaf == graph.twice.node().get()) late_has_grad = graph.late.grad().defined();
  });
  graph.loss.backward();
  CHECK(!late_has_grad);
  CHECK(graph.late.grad().defined());
  CHECK(Node::alive() == nodes);
}

TEST_CASE("grad hook: gradients continue adding up and the loss may be a leaf") {
  Graph graph;
  int calls = 0;
  const GradHook hook([&](const Node&) { ++calls; });
  graph.loss.backward({}, /*retain_graph=*/true);
  const Floats once = graph.late.grad().to_vector<float>();
  graph.loss.backward();
  CHECK(calls == 4);
  for (size_t i = 0; i < once.size(); ++i) CHECK(graph.late.grad().to_vector<float>()[i] == 2 * once[i]);
  const Tensor leaf = from_values(Floats{2.0f}, {}).requires_grad_();
  leaf.backward();
  CHECK(leaf.grad().item() == 1);
  CHECK(calls == 4);
}
