// Indexing as a user writes it, and assignment through it. The op cases check the values; here are handles and memory.
#include <doctest/doctest.h>

#include <concepts>

#include "autograd/ops.h"

namespace onestep {
namespace {

template <class T>
concept IndexedBy = requires(const Tensor& x, const T& index) {
  x[index];
};

}  // namespace

TEST_CASE("index: without index tensors it is a view, with them a copy") {
  const Tensor x = arange(24).view(2, 3, 4);
  CHECK(x.index({1, Slice(0, 2), None, Ellipsis}).shares_storage(x));
  CHECK(x[Slice(1)].shares_storage(x));
  CHECK_FALSE(x.index({tensor({0, 1})}).shares_storage(x));
  CHECK(equal(x.index({"...", -1}), x.select(2, 3)));
}

TEST_CASE("assignment: to what an expression gives, it writes there") {
  Tensor x = zeros(2, 3);
  x[0] = tensor({1.0, 2.0, 3.0});
  x[1] = 4.0;
  x[0][1] = 7;
  CHECK(equal(x, tensor({{1.0, 7.0, 3.0}, {4.0, 4.0, 4.0}})));
  x.index({Ellipsis, Slice(0, 2)}) = tensor({{-1.0}, {-2.0}});
  CHECK(equal(x, tensor({{-1.0, -1.0, 3.0}, {-2.0, -2.0, 4.0}})));
  x[Slice(None, None, 2)] *= 2;
  CHECK(equal(x[0], tensor({-2.0, -2.0, 6.0})));
}

TEST_CASE("assignment: to a tensor makes it another handle, as always") {
  Tensor x = zeros(3);
  const Tensor before = x;
  x = ones(3);
  CHECK(equal(before, zeros(3)));
  CHECK_FALSE(x.shares_storage(before));
}

TEST_CASE("assignment: where nobody could see it, it is refused") {
  const Tensor x = zeros(3), picked = tensor({0, 2});
  CHECK_THROWS_AS(x.index({picked}) = ones(2), ShapeError);
  CHECK_THROWS_AS(x.clone() = 1.0, ShapeError);
  CHECK(equal(x, zeros(3)));
  static_assert(IndexedBy<int> && IndexedBy<Slice>);
  static_assert(!IndexedBy<Tensor>);  // x[tensor] = y would write to a copy
}

TEST_CASE("index_put_: what is read while it is written to is read first") {
  Tensor x = arange(5);
  x.index_put_({tensor({0, 1, 2, 3})}, x[Slice(1)]);
  CHECK(equal(x, tensor({1, 2, 3, 4, 4})));
  x.index_put_({tensor({0, 0, 1})}, tensor({10, 20, 30}), /*accumulate=*/true);
  CHECK(equal(x, tensor({31, 32, 3, 4, 4})));
  x.index_put_({x > 5}, 0);
  CHECK(equal(x, tensor({0, 0, 3, 4, 4})));
}

TEST_CASE("methods: in-place ops take temporaries and give the handle back") {
  const Tensor x = zeros(2, 2);
  fill_(x[0], 3);
  x[1].add_(1).mul_(5);
  CHECK(equal(x, tensor({{3.0, 3.0}, {5.0, 5.0}})));
  CHECK(x.zero_().shares_storage(x));
  CHECK(equal(x, zeros(2, 2)));
}

TEST_CASE("methods: comparisons and activations with a parameter are the ops") {
  const Tensor x = tensor({-2.0, 0.25, 3.0});
  CHECK(x.equal(x.clone()));
  CHECK_FALSE(x.equal(x.abs()));
  CHECK(x.allclose(x + 1e-9));
  CHECK_FALSE(x.allclose(x + 1e-3));
  CHECK(x.prelu(tensor({0.5})).equal(tensor({-1.0, 0.25, 3.0})));
  CHECK(x.hardshrink().equal(tensor({-2.0, 0.0, 3.0})));
}

TEST_CASE("creation: sizes may be given without braces and a dtype after the shape") {
  CHECK(zeros(3, 4).shape() == Shape{3, 4});
  CHECK(ones(1, 2, 3).shape() == Shape{1, 2, 3});
  CHECK(randn({4, 3}, DType::float64).dtype() == DType::float64);
  CHECK(rand(2, 2).shape() == Shape{2, 2});
  CHECK(arange(6).view(2, -1).permute(1, 0).shape() == Shape{3, 2});
}

}  // namespace onestep
