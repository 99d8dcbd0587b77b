// Recomputation: the bits and the draws of the plain run, with less memory.
#include "autograd/checkpoint.h"

#include <doctest/doctest.h>

#include "autograd/grad.h"
#include "autograd/memory.h"
#include "autograd/ops.h"

namespace onestep {
namespace {

using Floats = std::vector<float>;

struct Net {
  Generator generator{7};
  Tensor x = randn({16, 32}, generator).requires_grad_(), w = randn({32, 32}, generator).requires_grad_(),
         v = randn({32, 32}, generator).requires_grad_();

  Tensor block(const Tensor& in) { return dropout(gelu(linear(in, w)), 0.3, true, generator) + in * tanh(linear(in, v)); }
  Tensor run(bool recompute) {
    Tensor y = x;
    for (int i = 0; i < 3; ++i)
      y = recompute ? autograd::checkpoint([this](const Tensor& in) { return block(in); }, y, generator) : block(y);
    return sum(y * y);
  }
};

std::vector<Floats> gradients(bool recompute) {
  Net net;
  net.run(recompute).backward();
  std::vector<Floats> all;
  for (const Tensor& x : {net.x, net.w, net.v, rand({8}, net.generator)})
    all.push_back((x.requires_grad() ? x.grad() : x).to_vector<float>());
  return all;
}

}  // namespace

TEST_CASE("checkpoint: gradients and random stream have the bits of the plain run") {
  CHECK(gradients(true) == gradients(false));
}

TEST_CASE("checkpoint: second derivatives go through it") {
  const auto twice = [](bool recompute) {
    Net net;
    const Tensor first = autograd::grad({net.run(recompute)}, {net.x}, {}, {.create_graph = true})[0];
    return autograd::grad({sum(first * first)}, {net.x})[0].to_vector<float>();
  };
  CHECK(twice(true) == twice(false));
}

TEST_CASE("checkpoint: keeps its inputs alone") {
  const auto kept = [](bool recompute) {
    const Tensor x = rand({64, 1024}).requires_grad_();
    const int64_t before = memory::stats().live_bytes;
    const auto chain = [](const Tensor& in) {
      Tensor y = in;
      for (int i = 0; i < 10; ++i) y = exp(y * -0.5);
      return y;
    };
    const Tensor y = recompute ? autograd::checkpoint(chain, x) : chain(x);
    return memory::stats().live_bytes - before;
  };
  CHECK(kept(true) < kept(false) / 5);
}

TEST_CASE("checkpoint: freed with the graph, and usable again with retain_graph") {
  const int64_t nodes = Node::alive();
  {
    Net net;
    const Tensor unused = net.run(true), loss = net.run(true);
    loss.backward({}, /*retain_graph=*/true);
    const Floats once = net.w.grad().to_vector<float>();
    loss.backward();
    const Floats twice = net.w.grad().to_vector<float>();
    for (size_t i = 0; i < once.size(); ++i) CHECK(twice[i] == 2 * once[i]);
    CHECK_THROWS_AS(loss.backward(), GradError);
  }
  CHECK(Node::alive() == nodes);
}

TEST_CASE("checkpoint: a function that does something else, and an input that was changed, are refused") {
  const Tensor x = ones({3}).requires_grad_();
  int calls = 0;
  const auto changing = [&](const Tensor& in) { return ++calls == 1 ? exp(in) : sin(in); };
  CHECK_THROWS_WITH_AS(
      sum(autograd::checkpoint(changing, x)).backward(),
      "checkpoint: the function recorded sin of shape [3] as op 0 when it ran again (it must do the same both times)",
      GradError);
  Tensor y = x * 2;
  const Tensor late = autograd::checkpoint([](const Tensor& in) { return exp(in); }, y);
  add_(y, 1);
  CHECK_THROWS_AS(sum(late).backward(), GradError);
}

}  // namespace onestep
