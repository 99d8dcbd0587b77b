// norm() sums the squares without writing them to memory.
#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "autograd/random/generator.h"

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

}  // namespace onestep
