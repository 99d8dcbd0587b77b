#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "autograd/kernels/parallel.h"
#include "autograd/ops.h"

namespace onestep {
namespace {

constexpr int64_t kQueries = 140, kKeys = 160;  // more than one block of queries

struct Leaves {
  explicit Leaves(uint32_t seed) {
    Generator generator(seed);
    q = randn({2, 2, kQueries, 8}, generator).requires_grad_();
    k = randn({2, 2, kKeys, 8}, generator).requires_grad_();
    v = randn({2, 2, kKeys, 5}, generator).requires_grad_();
    dy = randn({2, 2, kQueries, 5}, generator);
  }
  Tensor q, k, v, dy;
};

/// The same attention op by op; `visible` is true where a query may attend.
Tensor step_by_step(const Leaves& in, const Tensor& visible, double p, Generator& generator) {
  const Tensor scores = matmul(in.q, transpose(in.k, -2, -1)) * (1 / std::sqrt(8.0));
  const Tensor weights = softmax(masked_fill(scores, logical_not(visible), -std::numeric_limits<double>::infinity()), -1);
  return matmul(dropout(weights, p, true, generator), in.v);
}

Tensor causal_mask() { return tril(ones({kQueries, kKeys}, DType::boolean)); }

/// Every query sees some keys, in runs and alone.
Tensor scattered_mask() {
  Generator generator(5);
  const Tensor mask = lt(rand({2, 1, kQueries, kKeys}, generator), 0.6);
  return logical_or(mask, eq(arange(kKeys), 0));
}

}  // namespace

TEST_CASE("scaled_dot_product_attention: equal to unfused attention") {
  for (const bool causal : {true, false}) {
    for (const double p : {0.0, 0.25}) {
      CAPTURE(causal);
      CAPTURE(p);
      Leaves fused(1), steps(1);
      Generator a(9), b(9);
      const Tensor visible = causal ? causal_mask() : scattered_mask();
      const Tensor y = scaled_dot_product_attention(
          fused.q, fused.k, fused.v,
          {.mask = causal ? Tensor() : visible, .is_causal = causal, .dropout_p = p, .generator = &a});
      const Tensor want = step_by_step(steps, visible, p, b);
      CHECK(allclose(y, want, 1e-5, 1e-6));
      CHECK(a.u32() == b.u32());
      y.backward(fused.dy);
      want.backward(steps.dy);
      CHECK(allclose(fused.q.grad(), steps.q.grad(), 1e-5, 2e-6));
      CHECK(allclose(fused.k.grad(), steps.k.grad(), 1e-5, 2e-6));
      CHECK(allclose(fused.v.grad(), steps.v.grad(), 1e-5, 2e-6));
    }
  }
}

TEST_CASE("scaled_dot_product_attention: what is masked is never read") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Leaves clean(2), planted(2);
  AttentionOptions options;
  SUBCASE("keys after the last query") { options.is_causal = true; }
  SUBCASE("keys that no query sees") { options.mask = lt(arange(kKeys), kQueries); }
  SUBCASE("keys that only the last query sees") {
    options.mask = logical_or(lt(arange(kKeys), kQueries), eq(unsqueeze(arange(kQueries), 1), kQueries - 1));
  }
  for (const Tensor* leaf : {&planted.k, &planted.v}) {
    Tensor hidden = slice(leaf->detach(), 2, kQueries, kKeys);
    fill_(hidden, nan);
  }
  const Tensor y = scaled_dot_product_attention(clean.q, clean.k, clean.v, options);
  const Tensor z = scaled_dot_product_attention(planted.q, planted.k, planted.v, options);
  y.backward(clean.dy);
  z.backward(planted.dy);
  const int64_t others = kQueries - 1;
  CHECK(equal(slice(z.detach(), 2, 0, others), slice(y.detach(), 2, 0, others)));
  CHECK(equal(slice(planted.q.grad(), 2, 0, others), slice(clean.q.grad(), 2, 0, others)));
  const bool seen = options.mask.defined() && options.mask.dim() == 2;
  CHECK(all(isfinite(slice(z.detach(), 2, others, kQueries))).item<bool>() == !seen);
  if (seen) return;
  CHECK(equal(planted.k.grad(), clean.k.grad()));
  CHECK(equal(planted.v.grad(), clean.v.grad()));
}

TEST_CASE("scaled_dot_product_attention: a query without keys gives 0 and takes no gradient") {
  for (const int64_t end : {34, 110}) {  // one, and whole blocks of them
    CAPTURE(end);
    Leaves in(3);
    const Tensor i = unsqueeze(arange(kQueries), 1);
    const Tensor y = scaled_dot_product_attention(in.q, in.k, in.v, {.mask = logical_or(lt(i, 33), ge(i, end))});
    y.backward(in.dy);
    CHECK(equal(y.detach().slice(2, 33, end), zeros({2, 2, end - 33, 5})));
    CHECK(equal(in.q.grad().slice(2, 33, end), zeros({2, 2, end - 33, 8})));
    CHECK(all(isfinite(in.k.grad())).item<bool>());
    CHECK(all(isfinite(in.v.grad())).item<bool>());
  }
}

TEST_CASE("scaled_dot_product_attention: a query that overflows leaves the keys that it may not see alone") {
  const Tensor q = tensor({{1e30, 1e30}, {1.0, 1.0}}).requires_grad_(), k = tensor({{1.0, 1.0}, {1e30, 1e30}}).requires_grad_();
  const Tensor v = tensor({{1.0, 2.0}, {3.0, 4.0}}).requires_grad_();
  const Tensor mask = tensor({{false, true}, {true, false}});
  const Tensor y = scaled_dot_product_attention(q, k, v, {.mask = mask});
  CHECK(y.detach()[1].to_vector<float>() == std::vector<float>{1, 2});
  y.backward(ones({2, 2}));
  CHECK(k.grad()[0].to_vector<float>() == std::vector<float>{0, 0});
  CHECK(v.grad()[0].to_vector<float>() == std::vector<float>{1, 1});
  CHECK(any(isnan(v.grad()[1])).item<bool>());
}

TEST_CASE("scaled_dot_product_attention: a value that is not finite leaves other keys alone") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor q = ones({2, 2}).requires_grad_(), k = ones({3, 2}).requires_grad_();
  const Tensor v = tensor({{1.0, 2.0}, {3.0, 4.0}, {nan, nan}}).requires_grad_();
  const Tensor mask = tensor({{false, true, true}, {true, true, false}});
  scaled_dot_product_attention(q, k, v, {.mask = mask}).backward(ones({2, 2}));
  CHECK(all(isfinite(k.grad()[0])).item<bool>());
  CHECK(any(isnan(k.grad()[1])).item<bool>());
  CHECK(all(isfinite(v.grad())).item<bool>());
}

TEST_CASE("scaled_dot_product_attention: a query without heads has an empty result") {
  for (const int64_t kv_heads : {1, 3}) {
    const Tensor q = zeros({1, 0, 4, 8}).requires_grad_();
    const Tensor k = ones({1, kv_heads, 4, 8}).requires_grad_(), v = ones({1, kv_heads, 4, 5}).requires_grad_();
    const Tensor y = scaled_dot_product_attention(q, k, v, {.is_causal = true, .enable_gqa = true});
    CHECK(y.shape() == Shape{1, 0, 4, 5});
    sum(y).backward();
    CHECK(q.grad().shape() == q.shape());
    CHECK(equal(k.grad(), zeros(k.shape())));
    CHECK(equal(v.grad(), zeros(v.shape())));
  }
}

TEST_CASE("packed_attention: heads without features have an empty result") {
  for (const bool causal : {true, false}) {
    const Tensor x = zeros({2, 3, 0}).requires_grad_();
    const Tensor y = packed_attention(x, 2, 1, {.is_causal = causal});
    CHECK(y.shape() == Shape{2, 3, 0});
    sum(y).backward();
    CHECK(x.grad().shape() == x.shape());
  }
}

TEST_CASE("scaled_dot_product_attention: merging the heads of the result and of the gradients is a view") {
  Leaves in(4);
  const Tensor y = scaled_dot_product_attention(in.q, in.k, in.v, {.is_causal = true});
  CHECK(transpose(y, 1, 2).is_contiguous());
}

TEST_CASE("scaled_dot_product_attention: the same bits for any number of threads") {
  const int threads = kernels::num_threads();
  std::optional<Leaves> first;
  Tensor value;
  for (const int n : {1, 2, 3}) {
    kernels::set_num_threads(n);
    Leaves in(6);
    Generator generator(7);
    const Tensor y =
        scaled_dot_product_attention(in.q, in.k, in.v, {.is_causal = true, .dropout_p = 0.1, .generator = &generator});
    y.backward(in.dy);
    if (!first) {
      first = in;
      value = y.detach();
    }
    CHECK(equal(y.detach(), value));
    CHECK(equal(in.q.grad(), first->q.grad()));
    CHECK(equal(in.k.grad(), first->k.grad()));
    CHECK(equal(in.v.grad(), first->v.grad()));
  }
  kernels::set_num_threads(threads);
}

}  // namespace onestep
