// norm() sums the squares without writing them to memory; softmax along another dim than the last takes some columns at once.
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

TEST_CASE("softmax: the bits along any dim are those along the last one") {
  Generator g(4);
  for (const Shape& shape : {Shape{300, 1'111}, Shape{2, 700, 333}, Shape{40, 9, 17}}) {
    CAPTURE(shape);
    for (const int dim : {0, 1}) {
      const Tensor x = randn(shape, g), swapped = contiguous(transpose(x, dim, -1)), dy = randn(shape, g);
      for (const bool log : {false, true}) {
        const auto op = [=](const Tensor& t, int64_t d) { return log ? log_softmax(t, d) : softmax(t, d); };
        const Tensor rows = Tensor(swapped).detach().requires_grad_(), columns = x.detach().requires_grad_();
        const Tensor y = op(columns, dim), want = op(rows, -1);
        CHECK(equal(y.detach(), contiguous(transpose(want.detach(), dim, -1))));
        y.backward(dy);
        want.backward(contiguous(transpose(dy, dim, -1)));
        CHECK(equal(columns.grad(), contiguous(transpose(rows.grad(), dim, -1))));
      }
    }
  }
}

}  // namespace onestep
