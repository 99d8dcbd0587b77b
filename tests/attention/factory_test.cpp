#include "attention/factory.h"

#include <set>

#include "attention/multi_head_attention.h"
#include "tests/attention/book.h"

namespace onestep::attention {
namespace {

using testing::refusal;

const Options kOptions = {.d_in = 4, .d_out = 4, .context_length = 6, .num_heads = 2};
const std::set<AttentionKind> kOneHead = {AttentionKind::simplified, AttentionKind::self_v1, AttentionKind::self_v2,
                                          AttentionKind::causal};

Options options_of(AttentionKind kind) {
  Options options = kOptions;
  if (kOneHead.contains(kind)) options.num_heads = 1;
  return options;
}

TEST_CASE("factory: every kind builds and gives d_out features") {
  const std::vector<std::string> types = {"SimplifiedSelfAttention",  "SelfAttention_v1",          "SelfAttention_v2",
                                          "CausalAttention",          "MultiHeadAttentionWrapper", "MultiHeadAttention",
                                          "MultiHeadAttentionEinsum", "CausalSelfAttention"};
  std::vector<std::string> built;
  Generator generator(1);
  for (const AttentionKind kind : values_of<AttentionKind>()) {
    const auto attention = make_attention(kind, options_of(kind), generator);
    built.push_back(attention->name());
    CHECK(attention->d_in() == 4);
    CHECK(attention->d_out() == 4);
    CHECK((*attention)(ones({2, 5, 4})).shape() == Shape{2, 5, 4});
  }
  CHECK(built == types);
}

TEST_CASE("factory: the module is the one that the constructor builds") {
  Generator a(123), b(123);
  const auto made = make_attention(AttentionKind::multi_head, kOptions, a);
  const MultiHeadAttention built(4, 4, 6, 0.0, 2, false, b);
  const Tensor x = randn({2, 5, 4}, a);
  CHECK(equal((*made)(x), built(x)));
  CHECK(made->context_length() == 6);
}

TEST_CASE("factory: errors name the kind and the option") {
  Generator generator(1);
  const auto error = [&](AttentionKind kind, const Options& options) {
    return refusal<Error>([&] { make_attention(kind, options, generator); });
  };
  Options options = options_of(AttentionKind::simplified);
  options.d_out = 6;
  CHECK(error(AttentionKind::simplified, options) ==
        "make_attention: simplified has no weights, so d_out must be d_in: d_in=4, d_out=6");
  options.num_heads = 4;
  CHECK(error(AttentionKind::multi_head_wrapper, options) ==
        "make_attention: multi_head_wrapper: d_out must be divisible by num_heads: d_out=6, num_heads=4");
  CHECK(error(AttentionKind::multi_head, options).starts_with("MultiHeadAttention: d_out "));
  options = options_of(AttentionKind::self_v2);
  options.dropout = 0.1;
  CHECK(error(AttentionKind::self_v2, options) == "make_attention: self_v2 has no dropout: got 0.1 (set it to 0)");
  options = kOptions;
  options.out_bias = false;
  CHECK(error(AttentionKind::einsum, options) ==
        "make_attention: out_bias, num_kv_heads, window, rope, rope_theta, rope_scaling, head_dim and qk_norm belong to "
        "fused_qkv: got one for einsum");
  options = options_of(AttentionKind::self_v1);
  options.qkv_bias = true;
  CHECK(error(AttentionKind::self_v1, options) == "make_attention: self_v1 has no bias: got qkv_bias=true");
}

TEST_CASE("factory: an option that a type does not have is refused") {
  Generator generator(1);
  for (const AttentionKind kind : values_of<AttentionKind>()) {
    CAPTURE(name_of(kind));
    for (const int64_t num_heads : {0, 2}) {
      Options options = options_of(kind);
      options.num_heads = num_heads;
      if (kOneHead.contains(kind))
        CHECK(refusal<ConfigError>([&] { make_attention(kind, options, generator); }) ==
              "make_attention: " + std::string(name_of(kind)) + " has one head: got num_heads=" + std::to_string(num_heads) +
                  " (set it to 1)");
    }
    Options options = options_of(kind);
    options.rope_theta = 5;
    if (kind != AttentionKind::fused_qkv) CHECK_THROWS_AS(make_attention(kind, options, generator), ConfigError);
  }
}

}  // namespace
}  // namespace onestep::attention
