// norm() sums the squares without writing them to memory.
#include <doctest/doctest.h>

#include <array>

#include "autograd/ops.h"
#include "autograd/random/generator.h"
#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep {
namespace {

void check_as_in_steps(const Tensor& x, const Shape& dims) {
  CAPTURE(x.shape());
  CAPTURE(dims);
  for (const bool keepdim : {false, true}) CHECK(equal(norm(x, 2, dims, keepdim), sqrt(sum(mul(x, x), dims, keepdim))));
}

}  // namespace

TEST_CASE("norm: its bits are those of the root of a sum of squares in memory") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    Generator g(3);
    const Tensor x = to(randn({3, 5, 37, 7}, g), dtype);
    for (const Shape& dims : {Shape{}, {3}, {0}, {1, 2}, {2, 3}, {0, 3}, {0, 2, 3}, {0, 1, 2, 3}}) {
      check_as_in_steps(x, dims);
      check_as_in_steps(transpose(x, 0, 3), dims);
    }
    check_as_in_steps(to(randn({70'001}, g), dtype), {});  // in 64 chunks
    check_as_in_steps(zeros({0, 3}, dtype), {});
    check_as_in_steps(zeros({0, 3}, dtype), {0});
    check_as_in_steps(full({}, -2, dtype), {});
  }
}

TEST_CASE("group_norm: large groups, and a weight or a bias alone") {
  Generator g(5);
  for (const Shape& shape : {Shape{2, 80, 30}, Shape{3, 8, 2, 3}, Shape{4, 6}}) {
    CAPTURE(shape);
    const Tensor x = randn(shape, g), weight = randn({shape[1]}, g), bias = randn({shape[1]}, g);
    const Tensor groups = reshape(to(x, DType::float64), {shape[0], 2, -1}), centered = groups - mean(groups, {2}, true);
    const Tensor h = reshape(to(centered * rsqrt(mean(centered * centered, {2}, true) + 1e-5), DType::float32), shape);
    Shape channels = Shape::filled(x.dim() - 1, 1);
    channels[0] = shape[1];
    CHECK(allclose(group_norm(x, 2), h, 1e-5, 1e-5));
    CHECK(allclose(group_norm(x, 2, weight), h * reshape(weight, channels), 1e-5, 1e-5));
    CHECK(allclose(group_norm(x, 2, {}, bias), h + reshape(bias, channels), 1e-5, 1e-5));
  }
}

TEST_CASE(
    "layer_norm: each gradient has the same bits without the others, on any instruction set and threads, the bias a sum's") {
  Generator g(6);
  for (const Shape& shape : {Shape{64 * 65 + 3, 70}, Shape{200, 33}, Shape{5, 4097}}) {  // rows of more groups than a group has
    CAPTURE(shape);
    const Tensor values = randn(shape, g), dy = randn(shape, g), scale = randn({shape[1]}, g);
    const auto grads = [&](bool of_x, bool of_weight, bool of_bias) {
      const Tensor x = values.detach().requires_grad_(of_x), weight = scale.detach().requires_grad_(of_weight),
                   bias = scale.detach().requires_grad_(of_bias);
      layer_norm(x, shape[1], weight, bias).backward(dy);
      return std::array{x.grad(), weight.grad(), bias.grad()};
    };
    const auto all = grads(true, true, true);
    CHECK(equal(all[2], sum(dy, {0})));
    CHECK(equal(grads(true, false, false)[0], all[0]));
    CHECK(equal(grads(false, true, false)[1], all[1]));
    CHECK(equal(grads(false, false, true)[2], all[2]));
    kernels::testing::check_same_bits([&] {
      const auto [dx, dweight, dbias] = grads(true, true, true);
      return cat({dx.flatten(), dweight, dbias}, 0).to_vector<float>();
    });
  }
}

}  // namespace onestep
