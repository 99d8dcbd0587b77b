// forward_cached: the same bits as forward on all tokens, for every type and option.
#include "attention/kv_cache.h"

#include "attention/factory.h"
#include "autograd/autocast.h"
#include "tests/autograd/kernels/kernel_testing.h"
#include "tests/nn/check.h"

namespace onestep::attention {
namespace {

using testing::refusal;

constexpr int64_t kTokens = 300;  // beyond one block of queries, of keys and of the cache's first capacity

/// Feeds x [..., T, d] in pieces and compares the rows of each with those of forward(all so far).
void check_cached(const Attention& attention, const Tensor& x, const std::vector<int64_t>& pieces) {
  KvCache cache;
  int64_t first = 0;
  for (const int64_t count : pieces) {
    const Tensor got = attention.forward_cached(x.slice(-2, first, first + count), cache);
    first += count;
    CHECK(cache.length() == first);
    const Tensor want = attention(x.slice(-2, 0, first)).slice(-2, first - count, first);
    CHECK(equal(got, want.detach()));
  }
}

void check_kind(AttentionKind kind, Options options) {
  CAPTURE(name_of(kind));
  options.d_in = 8;
  options.context_length = kTokens;
  Generator generator(3);
  const auto attention = make_attention(kind, options, generator);
  attention->eval();
  for (const Shape& shape : {Shape{kTokens, 8}, Shape{2, kTokens, 8}})
    check_cached(*attention, randn(shape, generator), {1, 1, 5, 10, 1, 60, 1, 177, 1, 1, 42});
}

TEST_CASE("KvCache: every type gives the same bits with and without it") {
  for (const AttentionKind kind : values_of<AttentionKind>()) {
    const bool several = kind > AttentionKind::causal;  // all after it have heads
    check_kind(kind, {.d_out = 8, .num_heads = several ? 4 : 1});
  }
}

TEST_CASE("KvCache: every option gives the same bits with and without it") {
  check_kind(AttentionKind::fused_qkv, {.d_out = 8, .num_heads = 4, .num_kv_heads = 2});
  check_kind(AttentionKind::fused_qkv, {.d_out = 8, .num_heads = 4, .num_kv_heads = 1});
  check_kind(AttentionKind::fused_qkv, {.d_out = 8, .num_heads = 2, .window = 70});
  check_kind(AttentionKind::fused_qkv, {.d_out = 8, .num_heads = 2, .rope = true});
  check_kind(AttentionKind::fused_qkv,
             {.d_out = 8, .num_heads = 4, .dropout = 0.5, .qkv_bias = true, .num_kv_heads = 2, .window = 30, .rope = true});
}

TEST_CASE("KvCache: texts of different lengths give together the bits of each alone, by all threads") {
  const kernels::testing::Settings restore;
  kernels::set_num_threads(3);
  kernels::set_min_work_per_thread(0);
  for (const Options& more :
       {Options{}, {.num_kv_heads = 2, .window = 30, .rope = true}, {.dropout = 0.5, .rope = true, .qk_norm = true}}) {
    Options options = more;
    options.d_in = options.d_out = 8;
    options.context_length = kTokens;
    options.num_heads = 4;
    Generator generator(3);
    const auto attention = make_attention(AttentionKind::fused_qkv, options, generator);
    attention->eval();
    std::vector<KvCache> together(3), alone(3);
    const std::vector<KvCache*> caches{together.data(), &together[1], &together[2]};
    for (size_t b = 0; b < 3; ++b) {
      const Tensor before = randn({1, 1 + 40 * static_cast<int64_t>(b), 8}, generator);
      attention->forward_cached(before, together[b]);
      attention->forward_cached(before, alone[b]);
    }
    const auto check = [&](int64_t tokens) {
      const Tensor x = randn({3, tokens, 8}, generator), y = attention->forward_cached(x, caches);
      for (int64_t b = 0; b < 3; ++b)
        CHECK(equal(y.slice(0, b, b + 1), attention->forward_cached(x.slice(0, b, b + 1), alone[static_cast<size_t>(b)])));
      CHECK_FALSE(y.requires_grad());
    };
    for (const int64_t tokens : {1, 5, 30, 1}) check(tokens);
    for (size_t b = 0; b < 3; ++b) together[b].clear(), alone[b].clear();
    const AutocastGuard autocast;
    for (const int64_t tokens : {3, 1}) check(tokens);
  }
  const std::vector<KvCache*> none;
  Generator generator(3);
  const auto attention =
      make_attention(AttentionKind::fused_qkv, {.d_in = 8, .d_out = 8, .context_length = 9, .num_heads = 4}, generator);
  CHECK_THROWS_AS(attention->forward_cached(zeros({0, 1, 8}), none), Error);
}

TEST_CASE("KvCache: it holds what it was given, over every growth") {
  Generator generator(1);
  const Tensor keys = randn({2, 50, 3}, generator), values = randn({2, 50, 4}, generator);
  KvCache cache;
  for (int64_t i = 0; i < 50; i += 5) {
    const auto [all_keys, all_values] = cache.append(keys.slice(1, i, i + 5), values.slice(1, i, i + 5));
    CHECK(equal(all_keys, keys.slice(1, 0, i + 5)));
    CHECK(equal(all_values, values.slice(1, 0, i + 5)));
  }
  cache.clear();
  CHECK(cache.length() == 0);
  CHECK(equal(cache.append(values, keys).first, values));
}

TEST_CASE("KvCache: what was appended first says what fits, even if it was no tokens") {
  KvCache cache;
  cache.append(ones({2, 0, 3}), ones({2, 0, 4}));
  CHECK(refusal<ShapeError>([&] {
          cache.append(ones({1, 1, 3}), ones({1, 1, 4}));
        }) == "KvCache: new tokens of shape [1, 1, 3] do not fit those before: needs [2, 1, 3] (clear() it for other texts)");
  CHECK(refusal<DTypeError>([&] {
          cache.append(ones({2, 1, 3}), ones({2, 1, 4}, DType::float64));
        }) == "KvCache: new tokens of dtype float64 do not fit those before: needs float32 (clear() it for other texts)");
  CHECK(refusal<ShapeError>([&] {
          cache.append(ones({2, 1, 3}), ones({2, 2, 4}));
        }) == "KvCache: keys and values must be [..., n, d] and [..., n, e]: got [2, 1, 3] and [2, 2, 4]");
  CHECK(cache.length() == 0);
  CHECK(equal(cache.append(ones({2, 1, 3}), ones({2, 1, 4})).first, ones({2, 1, 3})));
}

TEST_CASE("KvCache: what does not fit is refused") {
  Generator generator(1);
  KvCache cache;
  const auto attention =
      make_attention(AttentionKind::multi_head, {.d_in = 4, .d_out = 4, .context_length = 6, .num_heads = 2}, generator);
  attention->forward_cached(ones({2, 4, 4}), cache);
  CHECK(refusal<ShapeError>([&] {
          attention->forward_cached(ones({2, 3, 4}), cache);
        }).starts_with("MultiHeadAttention: too many tokens: 7 with those in the cache and x [2, 3, 4] "));
  CHECK(refusal<ShapeError>([&] { attention->forward_cached(ones({1, 1, 4}), cache); }).starts_with("KvCache: new tokens "));
  CHECK(cache.length() == 4);
  CHECK_FALSE(attention->forward_cached(ones({2, 2, 4}), cache).requires_grad());
}

}  // namespace
}  // namespace onestep::attention
