#include "attention/factory.h"

#include <array>

#include "attention/causal_attention.h"
#include "attention/causal_self_attention.h"
#include "attention/einsum_attention.h"
#include "attention/multi_head_attention.h"
#include "attention/self_attention.h"

namespace onestep::attention {
namespace {

using Built = std::unique_ptr<Attention>;

struct Type {
  bool has_heads, has_dropout, has_qkv_bias;
  Built (*build)(const Options& o, Generator& generator);
};

Built build_simplified(const Options& o, Generator&) {
  ONESTEP_CHECK(ConfigError, o.d_in == o.d_out,
                "make_attention: simplified has no weights, so d_out must be d_in: d_in=", o.d_in, ", d_out=", o.d_out);
  return std::make_unique<SimplifiedSelfAttention>(o.d_in);
}

Built build_self_v1(const Options& o, Generator& generator) {
  return std::make_unique<SelfAttention_v1>(o.d_in, o.d_out, generator);
}

Built build_self_v2(const Options& o, Generator& generator) {
  return std::make_unique<SelfAttention_v2>(o.d_in, o.d_out, o.qkv_bias, generator);
}

Built build_causal(const Options& o, Generator& generator) {
  return std::make_unique<CausalAttention>(o.d_in, o.d_out, o.context_length, o.dropout, o.qkv_bias, generator);
}

Built build_multi_head_wrapper(const Options& o, Generator& generator) {
  ONESTEP_CHECK(ShapeError, o.num_heads > 0 && o.d_out % o.num_heads == 0,
                "make_attention: multi_head_wrapper: d_out must be divisible by num_heads: d_out=", o.d_out,
                ", num_heads=", o.num_heads);
  return std::make_unique<MultiHeadAttentionWrapper>(o.d_in, o.d_out / o.num_heads, o.context_length, o.dropout, o.num_heads,
                                                     o.qkv_bias, generator);
}

Built build_multi_head(const Options& o, Generator& generator) {
  return std::make_unique<MultiHeadAttention>(o.d_in, o.d_out, o.context_length, o.dropout, o.num_heads, o.qkv_bias, generator);
}

Built build_einsum(const Options& o, Generator& generator) {
  return std::make_unique<MultiHeadAttentionEinsum>(o.d_in, o.d_out, o.context_length, o.dropout, o.num_heads, o.qkv_bias,
                                                    generator);
}

Built build_fused_qkv(const Options& o, Generator& generator) { return std::make_unique<CausalSelfAttention>(o, generator); }

constexpr std::array<Type, names(AttentionKind()).size()> kTypes = {{
    {false, false, false, build_simplified},
    {false, false, false, build_self_v1},
    {false, false, true, build_self_v2},
    {false, true, true, build_causal},
    {true, true, true, build_multi_head_wrapper},
    {true, true, true, build_multi_head},
    {true, true, true, build_einsum},
    {true, true, true, build_fused_qkv},
}};

}  // namespace

std::unique_ptr<Attention> make_attention(AttentionKind kind, const Options& options, Generator& generator) {
  const Type& type = kTypes[static_cast<size_t>(kind)];
  const std::string_view name = name_of(kind);
  ONESTEP_CHECK(ConfigError, type.has_heads || options.num_heads == 1, "make_attention: ", name,
                " has one head: got num_heads=", options.num_heads, " (set it to 1)");
  ONESTEP_CHECK(ConfigError, type.has_dropout || options.dropout == 0, "make_attention: ", name, " has no dropout: got ",
                options.dropout, " (set it to 0)");
  ONESTEP_CHECK(ConfigError, type.has_qkv_bias || !options.qkv_bias, "make_attention: ", name,
                " has no bias: got qkv_bias=true");
  const Options defaults;
  ONESTEP_CHECK(
      ConfigError,
      kind == AttentionKind::fused_qkv ||
          (options.out_bias == defaults.out_bias && options.num_kv_heads == defaults.num_kv_heads &&
           options.window == defaults.window && options.rope == defaults.rope && options.rope_theta == defaults.rope_theta &&
           options.rope_scaling == defaults.rope_scaling && options.head_dim == defaults.head_dim &&
           options.qk_norm == defaults.qk_norm),
      "make_attention: out_bias, num_kv_heads, window, rope, rope_theta, rope_scaling, head_dim and qk_norm belong to "
      "fused_qkv: got one for ",
      name);
  return type.build(options, generator);
}

}  // namespace onestep::attention
