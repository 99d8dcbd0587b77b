#include <doctest/doctest.h>

#include "autograd/memory.h"
#include "autograd/ops.h"

namespace onestep {
namespace {

/// The most memory that a call holds at once.
template <class F>
int64_t bytes_taken(F call) {
  memory::reset_peak();
  const int64_t before = memory::stats().live_bytes;
  const Tensor result = call();
  return memory::stats().peak_bytes - before;
}

Tensor heads(const Tensor& x) { return transpose(view(x, {2, 7, 3, 8}), 1, 2); }

}  // namespace

TEST_CASE("matmul: transposed and head-split views are read where they lie") {
  Generator generator(1);
  const Tensor x = randn({2, 7, 24}, generator), y = randn({2, 7, 24}, generator);
  const Tensor q = heads(x), k = transpose(heads(y), -2, -1);
  const Tensor rows = contiguous(q), cols = contiguous(k);
  CHECK(equal(matmul(q, k), matmul(rows, cols)));
  const int64_t bytes = bytes_taken([&] { return matmul(rows, cols); });
  CHECK(bytes_taken([&] { return matmul(q, k); }) == bytes);

  SUBCASE("a layout without unit stride is copied") {
    const Tensor wide = randn({2, 3, 7, 16}, generator), strided = slice(wide, 3, 0, 16, 2);
    CHECK(equal(matmul(strided, cols), matmul(contiguous(strided), cols)));
    CHECK(bytes_taken([&] { return matmul(strided, cols); }) > bytes);
  }
  SUBCASE("rows of a wider matrix") {
    const Tensor wide = randn({40, 50}, generator), part = slice(slice(wide, 1, 5, 25), 0, 3, 33),
                 right = randn({20, 9}, generator);
    const Tensor copy = contiguous(part);
    CHECK(equal(matmul(part, right), matmul(copy, right)));
    CHECK(bytes_taken([&] { return matmul(part, right); }) == bytes_taken([&] { return matmul(copy, right); }));
  }
}

TEST_CASE("matmul: a batch against one right side has the bits of its rows in one product") {
  Generator generator(2);
  const Tensor x = randn({3, 5, 300}, generator), w = randn({300, 17}, generator), dy = randn({3, 5, 17}, generator);
  Tensor a = x.detach(), b = w.detach(), flat_a = view(x, {15, 300}).detach(), flat_b = w.detach();
  for (Tensor* leaf : {&a, &b, &flat_a, &flat_b}) leaf->requires_grad_();
  const Tensor y = matmul(a, b), flat = matmul(flat_a, flat_b);
  CHECK(equal(view(y, {15, 17}), flat));
  y.backward(dy);
  flat.backward(view(dy, {15, 17}));
  CHECK(equal(view(a.grad(), {15, 300}), flat_a.grad()));
  CHECK(equal(b.grad(), flat_b.grad()));
}

TEST_CASE("matmul: times a vector, each element has the bits of the dot product of its row, however both lie") {
  Generator generator(4);
  const auto check = [](const char* layout, const Tensor& a, const Tensor& v) {
    const Tensor y = matmul(a, v), rows = reshape(a, {-1, a.size(-1)});
    Tensor want = empty(rows.size(0));
    for (int64_t i = 0; i < rows.size(0); ++i) copy_(want[i], dot(rows[i], v));
    CHECK_MESSAGE(equal(flatten(y, 0, -1), want), layout, " ", a.shape());
  };
  for (const auto& [m, k] : {std::pair{1, 1}, {1, 7}, {7, 1}, {5, 33}, {65, 40}, {130, 17}, {3, 2050}, {150, 1040}}) {
    const Tensor spaced = randn(2 * k, generator);
    for (const Tensor& v : {randn(k, generator), slice(spaced, 0, 0, 2 * k, 2), expand(randn(1, generator), {k})}) {
      check("rows", randn({m, k}, generator), v);
      check("transposed", t(randn({k, m}, generator)), v);
      check("every second", slice(slice(randn({2 * m, 2 * k}, generator), 1, 0, 2 * k, 2), 0, 0, 2 * m, 2), v);
      check("one row", expand(randn({1, k}, generator), {m, k}), v);
      check("one column", expand(randn({m, 1}, generator), {m, k}), v);
      check("a batch", randn({3, m, k}, generator), v);
      check("a transposed batch", transpose(randn({3, k, m}, generator), 1, 2), v);
      check("rows between others", transpose(randn({3, m, 2, k}, generator), 1, 2), v);
      check("columns between others", permute(randn({2, k, 3, m}, generator), {0, 2, 3, 1}), v);
      check("one transposed matrix", expand(transpose(randn({1, k, m}, generator), 1, 2), {4, m, k}), v);
    }
  }
  CHECK(equal(matmul(randn({3, 0}, generator), zeros(0)), zeros(3)));
  const Tensor a = randn({5, 33}, generator).to(DType::float16), v = randn(33, generator).to(DType::float16);
  CHECK(equal(matmul(a, v), matmul(a.to(DType::float32), v.to(DType::float32)).to(DType::float16)));
}

TEST_CASE("linear: the bits of matmul and add") {
  Generator generator(3);
  const Tensor x = randn({4, 6, 70}, generator), w = randn({33, 70}, generator), bias = randn(33, generator);
  CHECK(equal(linear(x, w, bias), add(matmul(x, t(w)), bias)));
  CHECK(equal(linear(x, w), matmul(x, t(w))));
  CHECK(equal(linear(transpose(x, 0, 1), w, bias), linear(contiguous(transpose(x, 0, 1)), w, bias)));
}

TEST_CASE("matmul: an operand that only the other one's gradient needs may change") {
  Tensor a = ones({2, 2}), b = ones({2, 2});
  b.requires_grad_();
  const Tensor y = sum(matmul(a, b));
  Tensor values = b.detach();
  fill_(values, 3);  // a needs no gradient, so b was not saved
  y.backward();
  CHECK(equal(b.grad(), full({2, 2}, 2.0)));
  const Tensor again = sum(matmul(a, b));
  fill_(a, 3);
  CHECK_THROWS_AS(again.backward(), GradError);
}

}  // namespace onestep
