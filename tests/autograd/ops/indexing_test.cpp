#include <doctest/doctest.h>

#include <optional>

#include "autograd/ops.h"

namespace onestep {

TEST_CASE("embedding: the padding row gives its value and takes no gradient") {
  Tensor weight = randn({5, 3}).requires_grad_();
  const Tensor index = tensor({{0, 2, 2}, {4, 0, 2}});
  for (const int64_t padding : {2, -3}) {
    weight.zero_grad();
    const Tensor y = embedding(index, weight, padding);
    CHECK(equal(y[0][1].detach(), weight[2].detach()));
    y.backward(ones({2, 3, 3}));
    const Tensor times = unsqueeze(tensor({2.0, 0.0, 0.0, 0.0, 1.0}), 1);
    CHECK(equal(weight.grad(), contiguous(expand(times, {5, 3}))));
  }
}

TEST_CASE("embedding: a table that a head shares has the bits of both gradients added up") {
  const Tensor index = tensor({{3, 7, 3, 49}, {7, 3, 0, 8}}), dy = randn({2, 4, 50});
  Tensor shared = randn({50, 3}).requires_grad_();
  for (const std::optional<int64_t> padding :
       {std::optional<int64_t>(), std::optional<int64_t>(7), std::optional<int64_t>(9)}) {
    Tensor table = shared.detach().clone().requires_grad_(), head = shared.detach().clone().requires_grad_();
    linear(embedding(index, table, padding), head).backward(dy);
    shared.zero_grad();
    const Tensor y = linear(embedding(index, shared, padding), shared);
    y.backward(dy, /*retain_graph=*/true);
    const Tensor want = add(head.grad(), table.grad());
    CHECK(equal(shared.grad(), want));
    y.backward(dy);
    CHECK(equal(shared.grad(), add(want, want)));
  }
}

// In float32 1e8 + 1 is 1e8: only the ascending order gives these sums.
TEST_CASE("embedding and index_select and gather: repeated places add in ascending order") {
  const Tensor index = tensor({1, 1, 1, 0, 0, 0}), dy = tensor({1e8, 1.0, -1e8, 1e8, -1e8, 1.0}), want = tensor({1.0, 0.0});
  Tensor weight = zeros({2, 1}).requires_grad_(), x = zeros(2).requires_grad_(), z = zeros(2).requires_grad_();
  embedding(index, weight).backward(unsqueeze(dy, 1));
  CHECK(equal(weight.grad(), unsqueeze(want, 1)));
  index_select(x, 0, index).backward(dy);
  CHECK(equal(x.grad(), want));
  gather(z, 0, index).backward(dy);
  CHECK(equal(z.grad(), want));
}

TEST_CASE("cat: gradients are windows and parts without gradient stay out") {
  Tensor a = zeros({2, 2}).requires_grad_(), c = zeros({2, 1}, DType::float64).requires_grad_();
  const Tensor b = ones({2, 1}, DType::int64), y = cat({a, b, c}, 1);
  CHECK(y.dtype() == DType::float64);
  y.backward(to(tensor({{1, 2, 3, 4}, {5, 6, 7, 8}}), DType::float64));
  CHECK(equal(a.grad(), tensor({{1.0, 2.0}, {5.0, 6.0}})));
  CHECK(equal(c.grad(), tensor({{4.0}, {8.0}}, DType::float64)));
}

}  // namespace onestep
