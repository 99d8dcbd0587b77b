// Every variant of multi-head attention equals MultiHeadAttention with the same weights: forward, weights and gradients.
#include "tests/attention/variants.h"

#include "tests/nn/check.h"

namespace onestep::attention {
namespace {

using testing::einsum_style;
using testing::fused_qkv;

struct Size {
  int64_t batch, tokens, d_in, d_out, heads;
  bool qkv_bias;
};

const Size kSizes[] = {{2, 5, 4, 4, 2, false}, {3, 7, 5, 12, 3, true}, {1, 70, 16, 8, 4, true}};

bool same(const Tensor& a, const Tensor& b) { return a.shape() == b.shape() && allclose(a, b, 1e-5, 1e-6); }

/// Runs `module` on x in both ways, checks that they agree, and leaves the gradients of sum(y^2) in the parameters and in x.
AttentionResult run(Attention& module, Tensor& x) {
  const AttentionResult result = module.forward_with_weights(x);
  const Tensor context = module(x);
  CHECK(same(context, result.context));
  module.zero_grad();
  x.zero_grad();
  sum(context * context).backward();
  return result;
}

TEST_CASE("variants: fused QKV is MultiHeadAttention with its projections below each other") {
  for (const Size& s : kSizes) {
    Generator generator(5);
    MultiHeadAttention split(s.d_in, s.d_out, s.tokens, 0.0, s.heads, s.qkv_bias, generator);
    const auto fused = fused_qkv(split, s.qkv_bias);
    Tensor x = randn({s.batch, s.tokens, s.d_in}, generator).requires_grad_();
    const AttentionResult want = run(split, x);
    const Tensor dx = x.grad();
    const AttentionResult got = run(*fused, x);
    CHECK(same(got.context, want.context));
    CHECK(same(got.weights, want.weights));
    CHECK(same(x.grad(), dx));
    CHECK(same(fused->c_proj.weight.grad(), split.out_proj.weight.grad()));
    CHECK(same(fused->c_proj.bias.grad(), split.out_proj.bias.grad()));
    CHECK(same(fused->c_attn.weight.grad(),
               cat({split.W_query.weight.grad(), split.W_key.weight.grad(), split.W_value.weight.grad()})));
    if (s.qkv_bias)
      CHECK(same(fused->c_attn.bias.grad(),
                 cat({split.W_query.bias.grad(), split.W_key.bias.grad(), split.W_value.bias.grad()})));
  }
}

TEST_CASE("variants: einsum style is MultiHeadAttention with the heads as a dim") {
  for (const Size& s : kSizes) {
    Generator generator(5);
    MultiHeadAttention split(s.d_in, s.d_out, s.tokens, 0.0, s.heads, s.qkv_bias, generator);
    const auto named = einsum_style(split, s.qkv_bias);
    Tensor x = randn({s.batch, s.tokens, s.d_in}, generator).requires_grad_();
    const AttentionResult want = run(split, x);
    const Tensor dx = x.grad();
    const AttentionResult got = run(*named, x);
    CHECK(same(got.context, want.context));
    CHECK(same(got.weights, want.weights));
    CHECK(same(x.grad(), dx));
    const auto flat = [](const Tensor& parameter) { return parameter.grad().flatten(); };
    CHECK(same(flat(named->W_out), flat(split.out_proj.weight)));
    CHECK(same(named->b_out.grad(), split.out_proj.bias.grad()));
    CHECK(same(flat(named->W_query), flat(split.W_query.weight)));
    CHECK(same(flat(named->W_key), flat(split.W_key.weight)));
    CHECK(same(flat(named->W_value), flat(split.W_value.weight)));
    if (!s.qkv_bias) continue;
    CHECK(same(flat(named->b_query), flat(split.W_query.bias)));
    CHECK(allclose(flat(named->b_key), flat(split.W_key.bias), 0, 1e-5));  // 0: a shift of all keys changes no weight
    CHECK(same(flat(named->b_value), flat(split.W_value.bias)));
  }
}

TEST_CASE("variants: einsum style starts from the values of MultiHeadAttention") {
  Generator a(123), b(123);
  const MultiHeadAttention split(3, 4, 6, 0.0, 2, true, a);
  const MultiHeadAttentionEinsum named(3, 4, 6, 0.0, 2, true, b);
  CHECK(equal(named.W_query.flatten(), split.W_query.weight.flatten()));
  CHECK(equal(named.b_value.flatten(), split.W_value.bias.flatten()));
  CHECK(equal(named.W_out.flatten(), split.out_proj.weight.flatten()));
  CHECK(equal(named.b_out, split.out_proj.bias));
  CHECK(a.state() == b.state());
  CHECK(named.num_heads() == 2);
  CHECK(named.head_dim() == 2);
}

TEST_CASE("variants: with dropout each draws what MultiHeadAttention draws") {
  Generator generator(5);
  MultiHeadAttention split(4, 6, 5, 0.4, 3, true, generator);
  const auto fused = fused_qkv(split, true);
  const auto named = einsum_style(split, true);
  const Tensor x = randn({2, 5, 4}, generator);
  const std::string state = generator.state();
  const Tensor want = split(x);
  for (const Attention* variant : std::initializer_list<const Attention*>{fused.get(), named.get()}) {
    generator.set_state(state);
    CHECK(same((*variant)(x), want));
    generator.set_state(state);
    CHECK(same(variant->forward_with_weights(x).context, want));
  }
}

TEST_CASE("CausalSelfAttention: GPT-2's names, optional biases and errors") {
  Generator generator(5);
  const Options options{.d_in = 4, .d_out = 6, .context_length = 8, .num_heads = 3};
  const auto names = [&](const Options& o) {
    std::vector<std::string> keys;
    for (const auto& [key, _] : CausalSelfAttention(o, generator).state_dict()) keys.push_back(key);
    return keys;
  };
  CHECK(names(options) == std::vector<std::string>{"c_attn.weight", "c_proj.weight", "c_proj.bias"});
  Options other = options;
  other.qkv_bias = true;
  other.out_bias = false;
  CHECK(names(other) == std::vector<std::string>{"c_attn.weight", "c_attn.bias", "c_proj.weight"});
  const std::string state = generator.state();
  other.num_heads = 4;
  CHECK(
      testing::refusal<ShapeError>([&] { CausalSelfAttention(other, generator); }).starts_with("CausalSelfAttention: d_out "));
  CHECK(generator.state() == state);
  CHECK(testing::refusal<ShapeError>([&] {
          CausalSelfAttention(options, generator)(ones({2, 9, 4}));
        }).starts_with("CausalSelfAttention: too many tokens: 9 in x "));
}

}  // namespace
}  // namespace onestep::attention
