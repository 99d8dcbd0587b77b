#include "attention/factory.h"

#include <array>
#include <sstream>

#include "attention/causal_attention.h"
#include "attention/causal_self_attention.h"
#include "attention/einsum_attention.h"
#include "attention/multi_head_attention.h"
#include "attention/self_attention.h"

namespace onestep::attention {
namespace {

using Built = std::unique_ptr<Attention>;

struct Kind {
  std::string_view name;
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

constexpr std::array kKinds = {
    Kind{"simplified", false, false, false, build_simplified},
    Kind{"self_v1", false, false, false, build_self_v1},
    Kind{"self_v2", false, false, true, build_self_v2},
    Kind{"causal", false, true, true, build_causal},
    Kind{"multi_head_wrapper", true, true, true, build_multi_head_wrapper},
    Kind{"multi_head", true, true, true, build_multi_head},
    Kind{"einsum", true, true, true, build_einsum},
    Kind{"fused_qkv", true, true, true, build_fused_qkv},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kKinds.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kKinds[i].name;
  return names;
}();

const Kind& find_kind(std::string_view name) {
  for (const Kind& kind : kKinds)
    if (kind.name == name) return kind;
  std::ostringstream known;
  for (size_t i = 0; i < kNames.size(); ++i) known << (i == 0 ? "" : i + 1 == kNames.size() ? " or " : ", ") << kNames[i];
  fail<ConfigError>("make_attention: unknown attention: \"", name, "\" (", known.str(), ")");
}

}  // namespace

std::span<const std::string_view> attention_kinds() { return kNames; }

std::unique_ptr<Attention> make_attention(std::string_view name, const Options& options, Generator& generator) {
  const Kind& kind = find_kind(name);
  ONESTEP_CHECK(ConfigError, kind.has_heads || options.num_heads == 1, "make_attention: ", name,
                " has one head: got num_heads=", options.num_heads, " (set it to 1)");
  ONESTEP_CHECK(ConfigError, kind.has_dropout || options.dropout == 0, "make_attention: ", name, " has no dropout: got ",
                options.dropout, " (set it to 0)");
  ONESTEP_CHECK(ConfigError, kind.has_qkv_bias || !options.qkv_bias, "make_attention: ", name,
                " has no bias: got qkv_bias=true");
  const Options defaults;
  ONESTEP_CHECK(
      ConfigError,
      kind.build == build_fused_qkv ||
          (options.out_bias == defaults.out_bias && options.num_kv_heads == defaults.num_kv_heads &&
           options.window == defaults.window && options.rope == defaults.rope && options.rope_theta == defaults.rope_theta &&
           options.rope_scaling == defaults.rope_scaling && options.head_dim == defaults.head_dim &&
           options.qk_norm == defaults.qk_norm),
      "make_attention: out_bias, num_kv_heads, window, rope, rope_theta, rope_scaling, head_dim and qk_norm belong to "
      "fused_qkv: got one for ",
      name);
  return kind.build(options, generator);
}

}  // namespace onestep::attention
