// What PyTorch 2.13 does in corners: dtypes of numbers beside rank-0 tensors, arguments that convert, views and copies,
// overlapping and expanded targets, gradients that are kept.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "autograd/grad.h"
#include "autograd/ops.h"

namespace onestep {
namespace {

using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;

Tensor int32(const Tensor& x) { return x.to(DType::int32); }
Tensor uint8(const Tensor& x) { return x.to(DType::uint8); }

void check(const Tensor& got, DType dtype, const Integers& want) {
  CHECK(got.dtype() == dtype);
  CHECK(got.to_vector<int64_t>() == want);
}

}  // namespace

TEST_CASE("corners: what pads nothing is a tensor of its own in every mode") {
  for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular}) {
    const Tensor x = zeros({1, 3}), y = pad(x, {0, 0}, mode);
    fill_(y, 1);
    CHECK(equal(x, zeros({1, 3})));
  }
}

TEST_CASE("corners: a number does not widen a rank-0 tensor of its kind") {
  const Tensor x = int32(tensor({7})[0]), byte = uint8(tensor({200})[0]);
  const DType i32 = DType::int32;
  check(bitwise_and(x, 3), i32, {3});
  check(bitwise_or(x, 8), i32, {15});
  check(bitwise_xor(x, 1), i32, {6});
  check(bitwise_left_shift(x, 1), i32, {14});
  check(bitwise_right_shift(x, 1), i32, {3});
  check(floor_divide(x, 2), i32, {3});
  check(remainder(x, 4), i32, {3});
  check(remainder(16, x), i32, {2});
  check(fmod(x, 4), i32, {3});
  check(div(x, 2, RoundingMode::floor), i32, {3});
  check(bitwise_and(byte, 300), DType::uint8, {8});
  check(floor_divide(byte, 300), DType::uint8, {4});
  CHECK(remainder(x, 2.5).dtype() == DType::float32);
  CHECK(bitwise_and(tensor({true})[0], 3).dtype() == DType::int64);
  CHECK(remainder(ones({}, DType::float64), 0.3).item() == std::fmod(1.0, 0.3));
}

TEST_CASE("corners: reductions and softmax of another dtype") {
  const Tensor x = tensor({1, 2, 3});
  check(prod(x * 100, 0, false, DType::uint8), DType::uint8, {6000000 % 256});
  check(cumsum(x * 100, 0, DType::uint8), DType::uint8, {100, 44, 88});
  check(cumprod(x * 100, 0, DType::int32), DType::int32, {100, 20000, 6000000});
  check(sum(x * 100, 0, false, DType::uint8), DType::uint8, {88});
  CHECK(softmax(x, 0, DType::float64).dtype() == DType::float64);
  CHECK(equal(x.softmax(0, DType::float64), softmax(x.to(DType::float64), 0)));
  CHECK(equal(x.log_softmax(0, DType::float32), log_softmax(x.to(DType::float32), 0)));
  CHECK(amax(x).item<int64_t>() == 3);
  CHECK(x.amin().item<int64_t>() == 1);
}

TEST_CASE("corners: integers") {
  check(max_pool2d(arange(16).view({1, 4, 4}), 2), DType::int64, {5, 7, 13, 15});
  check(max_pool2d(uint8(arange(4)).view({1, 2, 2}), 2), DType::uint8, {3});
  CHECK_THROWS_AS(max_pool1d(arange(4).view({1, 4}), 2), DTypeError);
  CHECK_THROWS_AS(max_pool2d(ones({1, 2, 2}, DType::boolean), 2), DTypeError);
  const Tensor one = uint8(tensor({1, 1}));  // -target wraps around, and so does a - b
  CHECK(margin_ranking_loss(uint8(tensor({1, 200})), uint8(tensor({3, 4})), one, {.reduction = Reduction::none})
            .to_vector<float>() == Floats{2, 60});
}

TEST_CASE("corners: results that are views and results that are not") {
  const Tensor x = ones({3}).requires_grad_();
  CHECK_FALSE(linear(x, ones({2, 3})).is_view());
  const Tensor y = tensor({1, 2});
  CHECK_FALSE(diff(y, 0).shares_storage(y));
  CHECK(squeeze(y, Shape()).is_view());
}

TEST_CASE("corners: a write to an overlapping view leaves the elements beside the mask alone") {
  const Tensor x = zeros({4}), rows = as_strided(x, {3, 2}, {1, 1});  // rows share elements 1 and 2
  const Tensor mask = tensor({true, false, false, true, false, false}).view({3, 2});
  masked_scatter_(rows, mask, tensor({5.0, 6.0}));
  CHECK(x.to_vector<float>() == Floats{5, 0, 6, 0});
  masked_fill_(rows, mask, 7);
  CHECK(x.to_vector<float>() == Floats{7, 0, 7, 0});
}

TEST_CASE("corners: masked_fill_ of an expanded tensor writes elements that are the same memory once") {
  const Tensor x = zeros({2, 1});
  masked_fill_(x.expand({2, 3}), tensor({false, true, false, false, false, false}).view({2, 3}), 2);
  CHECK(x.to_vector<float>() == Floats{2, 0});
  const Tensor base = ones({2}).requires_grad_() * 1, rows = base.expand({3, 2});  // recorded, too
  masked_fill_(rows, tensor({false, true}), 2);
  CHECK(base.to_vector<float>() == Floats{1, 2});
  CHECK(rows.to_vector<float>() == Floats{1, 2, 1, 2, 1, 2});
  CHECK_THROWS_WITH_AS(rows.backward(ones({3, 2})), doctest::Contains("passes a write to an expanded tensor"), GradError);
}

TEST_CASE("corners: a leaf that stops requiring grad keeps its gradient, and collects no other") {
  Tensor x = ones({2}).requires_grad_();
  const Tensor used = sum(x * 3);
  sum(x * 2).backward();
  x.requires_grad_(false);
  CHECK(x.grad().to_vector<float>() == Floats{2, 2});
  used.backward();
  CHECK(x.grad().to_vector<float>() == Floats{2, 2});
  x.requires_grad_();
  CHECK(x.grad().to_vector<float>() == Floats{2, 2});
  sum(x).backward();
  CHECK(x.grad().to_vector<float>() == Floats{3, 3});
  x.requires_grad_(false);
  mul_(x, ones({2}).requires_grad_());  // the result of an op now
  CHECK(x.grad().to_vector<float>() == Floats{3, 3});
  x.zero_grad();
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("corners: floor_divide is part of the graph, but has no derivative") {
  const Tensor x = tensor({5.0, 7.0}).requires_grad_(), y = floor_divide(x, 2);
  CHECK(y.requires_grad());
  CHECK_THROWS_WITH_AS(sum(y).backward(),
                       "floor_divide: has no derivative (use div with RoundingMode::floor, whose gradient is 0)", GradError);
}

TEST_CASE("corners: a tensor with which a backward pass begins gets its gradient whatever the inputs are") {
  const Tensor x = ones({2}).requires_grad_(), other = x * 3;
  Tensor y = x * 2;
  y.retain_grad();
  y.backward(ones({2}), /*retain_graph=*/true, /*create_graph=*/false, {other});
  CHECK(y.grad().to_vector<float>() == Floats{1, 1});
  CHECK_FALSE(x.grad().defined());
  x.backward(ones({2}), false, false, {other});
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("corners: a view that was written to retains the gradient of what it is now") {
  const Tensor x = ones({2}).requires_grad_();
  Tensor y = x * 1, view = y.view({2});
  view.retain_grad();
  mul_(view, 2);
  sum(y * 3).backward();
  CHECK_FALSE(view.grad().defined());
  CHECK(view.retains_grad());
}

TEST_CASE("corners: views of a view that is a leaf are not written to while recording") {
  const Tensor x = ones({3}).slice(0, 0, 2).requires_grad_();
  CHECK_THROWS_WITH_AS(index_put_(x, {0}, 1.5), doctest::Contains("copy_: a view of a leaf "), GradError);
  CHECK_THROWS_WITH_AS(mul_(x.slice(0, 1, 2), 2), doctest::Contains("mul_: a view of a leaf "), GradError);
}

TEST_CASE("corners: a size of 1 broadcasts in tensordot, on either side") {
  const Tensor a = tensor({2.0, 3.0}).view({2, 1}), b = arange(6).to(DType::float32).view({3, 2});
  CHECK(tensordot(a, b, 1).to_vector<float>() == Floats{12, 18, 18, 27});
  CHECK(tensordot(b, transpose(a, 0, 1), 1).to_vector<float>() == Floats{2, 3, 10, 15, 18, 27});
}

TEST_CASE("corners: tensordot sums integers in their own dtype before a product, einsum in int64, as in PyTorch") {
  const Tensor a = int32(tensor({2})).view({1, 1}), b = int32(arange(6)).view({2, 3});
  check(flatten(tensordot(a, b, 1)), DType::int32, {6, 10, 14});
  check(einsum("ik,j->ij", {b, int32(tensor({1, 2}))}).flatten(), DType::int64, {3, 6, 12, 24});
}

TEST_CASE("corners: the gradient of abs is part of the graph in a recorded pass") {
  const Tensor x = tensor({-1.0, 2.0}).requires_grad_();
  const Tensor y = abs(x);
  const auto grads = autograd::grad({sum(y)}, {x}, {}, {.create_graph = true});
  CHECK(grads[0].requires_grad());
  CHECK(grads[0].to_vector<float>() == Floats{-1, 1});
}

}  // namespace onestep
