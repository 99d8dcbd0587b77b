// Ops over rows and columns of bfloat16 and float16, which go piece by piece: the bits of float32 arithmetic, rounded once.
#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autograd/kernels/kernels.h"
#include "autograd/ops.h"
#include "autograd/ops/common.h"

namespace onestep {
namespace {

using Op = std::function<Tensor(const Tensor&)>;

std::vector<uint16_t> bits(const Tensor& x) {
  const Tensor values = ops::contiguous_values(x.detach());
  const auto* const first = static_cast<const uint16_t*>(values.data_ptr());
  return {first, first + values.numel()};
}

Tensor random_halves(const Shape& shape, DType dtype) {
  manual_seed(7);
  return to(randn(shape) * 3, dtype);
}

/// f's result, and where `grad` its gradient, of halves and of the same numbers as float32, rounded.
void check_rounded(const Tensor& x, const Op& f, bool grad) {
  Tensor half = x.detach().requires_grad_(), wide = to(x.detach(), DType::float32).requires_grad_();
  const Tensor y = f(half), exact = f(wide);
  CHECK(y.dtype() == x.dtype());
  CHECK(y.shape() == exact.shape());
  CHECK(bits(y) == bits(to(exact, x.dtype())));
  if (!grad) return;
  const Tensor dy = random_halves(y.shape(), x.dtype());
  y.backward(dy);
  exact.backward(to(dy, DType::float32));
  CHECK(half.grad().dtype() == x.dtype());
  CHECK(bits(half.grad()) == bits(to(wide.grad(), x.dtype())));
}

/// Rows of 0 to several pieces of 4096 elements, and rows and columns that cut across them.
const Shape kShapes[] = {{0, 5},    {5, 0},    {5000, 0}, {1, 1},     {3, 1},      {1, 4096},    {2, 4097},  {5, 511},
                         {5, 513},  {63, 65},  {64, 64},  {130, 600}, {129, 40},   {4097, 3},    {700, 7},   {2, 70000},
                         {9, 1500}, {3, 5, 7}, {0, 4, 3}, {4, 0, 3},  {4, 90, 33}, {2, 65, 513}, {3, 70, 1}, {2, 9, 5, 6}};
constexpr DType kHalves[] = {DType::bfloat16, DType::float16};

/// Calls f(x) for x of every shape and halves of both dtypes, contiguous, its dims turned round, and a part of a longer row.
template <class F>
void for_each_input(const F& f) {
  for (const DType dtype : kHalves)
    for (const Shape& shape : kShapes) {
      CAPTURE(dtype);
      CAPTURE(shape);
      const Tensor x = random_halves(shape, dtype);
      f(x);
      f(transpose(x, 0, -1));
      if (shape.back() > 2) f(slice(x, -1, 1, shape.back() - 1));
    }
}

TEST_CASE("narrow rows: softmax and its logarithm, and sums and extrema over any dims, are those of float32, rounded") {
  for_each_input([](const Tensor& x) {
    for (int d = 0; d < x.dim(); ++d) {
      CAPTURE(d);
      check_rounded(
          x, [d](const Tensor& v) { return softmax(v, d); }, false);
      check_rounded(
          x, [d](const Tensor& v) { return log_softmax(v, d); }, false);
      check_rounded(
          x, [d](const Tensor& v) { return sum(v, {d}); }, true);
      if (x.size(d) == 0) continue;
      check_rounded(
          x, [d](const Tensor& v) { return amax(v, {d}); }, true);
      check_rounded(
          x, [d](const Tensor& v) { return amin(v, {d}, true); }, true);
      check_rounded(
          x, [d](const Tensor& v) { return max(v, d).values; }, true);
    }
    check_rounded(
        x, [](const Tensor& v) { return sum(v); }, true);
    check_rounded(
        x,
        [](const Tensor& v) {
          return sum(v, {0, -1});
        },
        true);
    if (x.numel() > 0)
      check_rounded(
          x, [](const Tensor& v) { return max(v); }, false);
  });
}

TEST_CASE("narrow rows: NaN, infinities and zeros of both signs") {
  for (const DType dtype : kHalves)
    for (const Shape& shape : {Shape{3, 600}, Shape{600, 70}, Shape{8, 5}}) {
      Tensor x = random_halves(shape, dtype);
      x.flatten().slice(0, 3, 9).copy_(tensor({NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e30}));
      x.select(0, 1).fill_(-INFINITY);
      x.select(0, 2).fill_(-0.0);
      for (const int d : {0, 1}) {
        check_rounded(
            x, [d](const Tensor& v) { return sum(v, {d}); }, false);
        check_rounded(
            x, [d](const Tensor& v) { return amax(v, {d}); }, false);
        check_rounded(
            x, [d](const Tensor& v) { return amin(v, {d}); }, false);
        check_rounded(
            x, [d](const Tensor& v) { return softmax(v, d); }, false);
        check_rounded(
            x, [d](const Tensor& v) { return log_softmax(v, d); }, false);
      }
    }
}

template <class Forward, class Kernel>
void check_softmax_grad(const Tensor& x, const Forward& f, const Kernel& kernel) {
  Tensor leaf = x.detach().requires_grad_();
  const Tensor y = f(leaf, -1), dy = random_halves(x.shape(), x.dtype());
  y.backward(dy);
  const Tensor saved = to(ops::contiguous_values(y.detach()), DType::float32), upstream = to(dy, DType::float32);
  Tensor dx = empty(x.shape(), DType::float32);
  const int64_t cols = x.shape().back(), rows = cols > 0 ? x.numel() / cols : 0;
  kernel(saved.data<float>(), upstream.data<float>(), dx.mutable_data<float>(), rows, cols);
  CHECK(bits(leaf.grad()) == bits(to(dx, x.dtype())));
  if (x.dim() != 2 || x.size(1) <= 64) return;
  // Of columns: some have the gradient that they have beside others.
  Tensor all = x.detach().requires_grad_(), some = x.slice(1, 7, 64).detach().requires_grad_();
  f(all, 0).backward(dy);
  f(some, 0).backward(dy.slice(1, 7, 64));
  CHECK(bits(all.grad().slice(1, 7, 64)) == bits(some.grad()));
}

TEST_CASE("narrow rows: the gradients of softmax and its logarithm are those of float32 from the rounded result, rounded") {
  for_each_input([](const Tensor& x) {
    check_softmax_grad(
        x, [](const Tensor& v, int64_t d) { return softmax(v, d); }, kernels::softmax_grad_rows<float>);
    check_softmax_grad(
        x, [](const Tensor& v, int64_t d) { return log_softmax(v, d); }, kernels::log_softmax_grad_rows<float>);
  });
}

TEST_CASE("narrow rows: the gradients of layer norm are those of float32, rounded") {
  for_each_input([](const Tensor& x) {
    const auto last = x.shape().back();
    check_rounded(
        x, [last](const Tensor& v) { return layer_norm(v, last); }, true);
    const Tensor dy = random_halves(x.shape(), x.dtype()), scale = random_halves({last}, x.dtype());
    const auto grads = [&](DType dtype) {
      const Tensor in = to(x.detach(), dtype).requires_grad_(), weight = to(scale.detach(), dtype).requires_grad_(),
                   bias = to(scale.detach(), dtype).requires_grad_();
      layer_norm(in, last, weight, bias).backward(to(dy, dtype));
      return std::array{in.grad(), weight.grad(), bias.grad()};
    };
    const auto halves = grads(x.dtype()), wide = grads(DType::float32);
    for (size_t i = 0; i < wide.size(); ++i) CHECK(bits(halves[i]) == bits(to(wide[i], x.dtype())));
  });
}

}  // namespace
}  // namespace onestep
