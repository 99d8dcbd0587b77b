#include "autograd/dot.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "base/error.h"

using namespace onestep;

TEST_CASE("to_dot: leaves by name and ops with their shapes and the arrows between them") {
  const Tensor w = ones({3, 2}).requires_grad_(), b = ones({2}).requires_grad_(), x = ones({4, 3});
  const Tensor loss = sum(tanh(add(matmul(x, w), b)));
  CHECK(to_dot(loss, {{"layer.\"w\"", w}, {"unused", x}}) == R"(digraph onestep {
  rankdir=TB;
  node [fontname="sans-serif", fontsize=10];
  n0 [label="layer.\"w\"\n[3, 2]", shape=box, style=filled, fillcolor="#dbe9f6"];
  n1 [label="leaf\n[2]", shape=box, style=filled, fillcolor="#dbe9f6"];
  n2 [label="matmul\n[4, 2]", shape=ellipse];
  n0 -> n2;
  n3 [label="add\n[4, 2]", shape=ellipse];
  n2 -> n3;
  n1 -> n3;
  n4 [label="tanh\n[4, 2]", shape=ellipse];
  n3 -> n4;
  n5 [label="sum\n[]", shape=ellipse];
  n4 -> n5;
}
)");
}

TEST_CASE("to_dot: a tensor used twice is one node with two arrows") {
  const Tensor x = ones({2}).requires_grad_();
  const std::string dot = to_dot(mul(x, x));
  CHECK(dot.find("  n0 -> n1;\n  n0 -> n1;\n}") != std::string::npos);
  CHECK(dot.find("n2") == std::string::npos);
}

TEST_CASE("to_dot: a long chain is no deep recursion") {
  Tensor x = ones({1}).requires_grad_();
  for (int i = 0; i < 100000; ++i) x = neg(x);
  CHECK(to_dot(x).ends_with("  n99999 -> n100000;\n}\n"));
}

TEST_CASE("to_dot: what was not recorded is refused") {
  CHECK_THROWS_WITH_AS(to_dot(ones({2})),
                       "to_dot: a tensor of shape [2] that does not require grad has no graph (compute it from a tensor that "
                       "does, outside NoGradGuard)",
                       GradError);
}
