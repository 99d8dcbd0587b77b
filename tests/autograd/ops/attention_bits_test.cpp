// What a query sees decides its row, bit for bit, and not the queries and keys that are computed along with it.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/memory.h"
#include "autograd/ops.h"

namespace onestep {
namespace {

constexpr int64_t kTokens = 700;  // several blocks of queries and of keys

Tensor heads(int64_t count, Generator& generator) { return randn({2, count, kTokens, 8}, generator); }

TEST_CASE("scaled_dot_product_attention: each query alone gives the bits of all together") {
  Generator generator(1);
  const Tensor q = heads(4, generator), k = heads(2, generator), v = heads(2, generator);
  for (const int64_t window : {0, 1, 100, 300}) {
    CAPTURE(window);
    const Tensor all = scaled_dot_product_attention(q, k, v, {.is_causal = true, .window = window, .enable_gqa = true});
    for (const int64_t i : {0, 63, 64, 255, 256, 299, 300, 356, 400, 555, 699}) {
      CAPTURE(i);
      const Tensor one =
          scaled_dot_product_attention(q.slice(2, i, i + 1), k.slice(2, 0, i + 1), v.slice(2, 0, i + 1),
                                       {.is_causal = true, .query_offset = i, .window = window, .enable_gqa = true});
      CHECK(equal(one, all.slice(2, i, i + 1)));
    }
    const Tensor some =
        scaled_dot_product_attention(q.slice(2, 290, 500), k.slice(2, 0, 500), v.slice(2, 0, 500),
                                     {.is_causal = true, .query_offset = 290, .window = window, .enable_gqa = true});
    CHECK(equal(some, all.slice(2, 290, 500)));
  }
}

TEST_CASE(
    "scaled_dot_product_attention: each query alone gives the gradient of all together, 128 add up to keys' and values'") {
  Generator generator(6);
  const Tensor q = heads(2, generator), k = heads(2, generator), v = heads(2, generator), dy = heads(2, generator);
  struct Gradients {
    Tensor q, k, v;
  };
  for (const int64_t window : {0, 100}) {
    CAPTURE(window);
    const auto of_queries = [&](int64_t i, int64_t end) -> Gradients {
      Tensor some = q.slice(2, i, end).contiguous().requires_grad_();
      Tensor keys = k.clone().requires_grad_(), values = v.clone().requires_grad_();
      scaled_dot_product_attention(some, keys.slice(2, 0, end), values.slice(2, 0, end),
                                   {.is_causal = true, .query_offset = i, .window = window})
          .backward(dy.slice(2, i, end));
      return {some.grad(), keys.grad(), values.grad()};
    };
    const Gradients all = of_queries(0, kTokens);
    for (const int64_t i : {0, 23, 24, 127, 128, 255, 256, 300, 699})
      CHECK(equal(of_queries(i, i + 1).q, all.q.slice(2, i, i + 1)));
    Tensor dk = zeros_like(k), dv = zeros_like(v);
    for (int64_t i = 0; i < kTokens; i += 128) {
      const Gradients block = of_queries(i, std::min(i + 128, kTokens));
      dk = dk + block.k;
      dv = dv + block.v;
    }
    CHECK(equal(dk, all.k));
    CHECK(equal(dv, all.v));
  }
}

TEST_CASE("scaled_dot_product_attention: shared heads are repeated heads, bit for bit") {
  Generator generator(2);
  Tensor q = heads(4, generator).requires_grad_(), k = heads(2, generator).requires_grad_();
  Tensor v = heads(2, generator).requires_grad_();
  const auto repeated = [](const Tensor& x) { return x.unsqueeze(2).expand({2, 2, 2, kTokens, 8}).flatten(1, 2); };
  const Tensor shared = scaled_dot_product_attention(q, k, v, {.is_causal = true, .enable_gqa = true});
  const Tensor full = scaled_dot_product_attention(q, repeated(k), repeated(v), {.is_causal = true});
  CHECK(equal(shared, full));
  const Tensor dy = heads(4, generator);
  shared.backward(dy);
  const Tensor dq = q.grad(), dk = k.grad(), dv = v.grad();
  for (Tensor* x : {&q, &k, &v}) x->zero_grad();
  full.backward(dy);
  CHECK(equal(q.grad(), dq));
  CHECK(allclose(k.grad(), dk, 1e-5, 1e-5));
  CHECK(allclose(v.grad(), dv, 1e-5, 1e-5));
}

TEST_CASE("scaled_dot_product_attention in bfloat16: what is masked does not change the bits of either order of sums") {
  Generator generator(8);
  const Tensor q = heads(2, generator), k = heads(2, generator), v = heads(2, generator), dy = heads(2, generator);
  const auto pass = [&](bool finite) {  // 600 queries, to which the last 100 keys are hidden
    Tensor keys = k.clone(), values = v.clone();
    if (!finite) {
      fill_(keys.slice(2, 600, kTokens), std::numeric_limits<double>::infinity());
      fill_(values.slice(2, 600, kTokens), std::numeric_limits<double>::quiet_NaN());
    }
    Tensor queries = q.slice(2, 0, 600).clone();
    Tensor leaves[] = {queries.requires_grad_(), keys.requires_grad_(), values.requires_grad_()};
    const AutocastGuard autocast;
    const Tensor y = scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], {.is_causal = true});
    y.backward(dy.slice(2, 0, 600).to(y.dtype()));
    return std::vector<Tensor>{y.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
  };
  std::vector<Tensor> pairs;
  for (const Bf16Order order : {Bf16Order::avx512, Bf16Order::amx}) {
    const Bf16OrderGuard guard(order);
    const std::vector<Tensor> finite = pass(true), other = pass(false);
    for (size_t i = 0; i < finite.size(); ++i) CHECK(equal(finite[i], other[i]));
    if (order == Bf16Order::amx) CHECK_FALSE(equal(finite[1], pairs[1]));
    pairs = finite;
  }
}

TEST_CASE("packed_attention: the bits of splitting and merging the heads") {
  Generator generator(4);
  for (const auto& way : {std::pair{0.0, false}, {0.25, false}, {0.0, true}, {0.25, true}}) {
    const auto dropout_p = way.first;
    const bool narrow = way.second;
    CAPTURE(dropout_p);
    CAPTURE(narrow);
    const AutocastGuard autocast(narrow);
    Tensor qkv = randn({2, 300, (4 + 2 * 2) * 8}, generator).requires_grad_();
    const Tensor dy = randn({2, 300, 4 * 8}, generator);
    AttentionOptions options = {.is_causal = true, .window = 200, .enable_gqa = true, .dropout_p = dropout_p};
    Generator first(5), second(5);
    options.generator = &first;
    const Tensor y = packed_attention(qkv, 4, 2, options);
    y.backward(dy.to(y.dtype()));
    const Tensor dqkv = qkv.grad();
    qkv.zero_grad();
    const auto heads = [&](int64_t begin, int64_t count) {
      return qkv.slice(2, begin * 8, (begin + count) * 8).view({2, 300, count, 8}).transpose(1, 2);
    };
    options.generator = &second;
    const Tensor apart = scaled_dot_product_attention(heads(0, 4), heads(4, 2), heads(6, 2), options);
    const Tensor merged = apart.transpose(1, 2).flatten(2, 3);
    CHECK(equal(y, merged));
    merged.backward(dy.to(y.dtype()));
    CHECK(equal(qkv.grad(), dqkv));
  }
}

TEST_CASE("cached_attention: the bits of each text alone, whatever lies in what it does not attend to") {
  Generator generator(7);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16})
    for (const int64_t window : {0, 100})
      for (const int64_t queries : {1, 5, 30, 150}) {
        CAPTURE(dtype);
        CAPTURE(window);
        CAPTURE(queries);
        const Tensor q = randn({3, 4, queries, 8}, generator).to(dtype);
        std::vector<Tensor> keys, values;
        for (const int64_t more : {300, 0, 40}) {
          // The first tokens of room for more, as a cache has them.
          Tensor k = full({1, 2, 500, 8}, nan).to(dtype), v = full({1, 2, 500, 6}, nan).to(dtype);
          const int64_t tokens = queries + more;
          copy_(k.slice(2, 0, tokens), randn({1, 2, tokens, 8}, generator));
          copy_(v.slice(2, 0, tokens), randn({1, 2, tokens, 6}, generator));
          if (window > 0 && more > window) fill_(v.slice(2, 0, more - window), nan);
          keys.push_back(k.slice(2, 0, tokens));
          values.push_back(v.slice(2, 0, tokens));
        }
        const Tensor all = cached_attention(q, keys, values, window);
        CHECK(all.dtype() == dtype);
        CHECK_FALSE(any(isnan(all)).item<bool>());
        for (size_t b = 0; b < 3; ++b) {
          const auto text = static_cast<int64_t>(b);
          const int64_t offset = keys[b].size(2) - queries;
          CHECK(equal(
              all.slice(0, text, text + 1),
              scaled_dot_product_attention(q.slice(0, text, text + 1), keys[b], values[b],
                                           {.is_causal = true, .query_offset = offset, .window = window, .enable_gqa = true})));
        }
      }
}

TEST_CASE("scaled_dot_product_attention: memory grows with the number of tokens and not with its square") {
  const auto peak = [](int64_t tokens) {
    Generator generator(3);
    Tensor x = randn({8, tokens, 16}, generator).requires_grad_();
    memory::reset_peak();
    const int64_t before = memory::stats().live_bytes;
    sum(scaled_dot_product_attention(x, x, x, {.is_causal = true})).backward();
    return memory::stats().peak_bytes - before;
  };
  CHECK(peak(4096) < 2.5 * static_cast<double>(peak(2048)));
  CHECK(peak(4096) < 8 * 4096 * 4096);  // a byte a weight
}

}  // namespace
}  // namespace onestep
