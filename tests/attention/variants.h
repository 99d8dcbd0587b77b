#pragma once
// Variants of multi-head attention that compute what MultiHeadAttention computes, built with its weights.
#include "attention/causal_self_attention.h"
#include "attention/einsum_attention.h"
#include "attention/multi_head_attention.h"
#include "autograd/ops.h"

namespace onestep::testing {

/// `name` of a module's state.
inline Tensor state_of(const nn::Module& module, const std::string& name) {
  for (const auto& [key, tensor] : module.state_dict())
    if (key == name) return tensor;
  fail<ConfigError>("state_of: no ", name);
}

/// Fused QKV: the three projections' rows below each other.
inline std::unique_ptr<attention::CausalSelfAttention> fused_qkv(const attention::MultiHeadAttention& from, bool qkv_bias) {
  auto variant = std::make_unique<attention::CausalSelfAttention>(attention::Options{.d_in = from.d_in(),
                                                                                     .d_out = from.d_out(),
                                                                                     .context_length = *from.context_length(),
                                                                                     .num_heads = from.num_heads(),
                                                                                     .dropout = from.dropout.p(),
                                                                                     .qkv_bias = qkv_bias},
                                                                  from.dropout.generator());
  nn::NamedTensors state = {{"c_proj.weight", from.out_proj.weight}, {"c_proj.bias", from.out_proj.bias}};
  const auto joined = [&](const std::string& field) {
    return cat({state_of(from, "W_query." + field), state_of(from, "W_key." + field), state_of(from, "W_value." + field)});
  };
  state.emplace_back("c_attn.weight", joined("weight"));
  if (qkv_bias) state.emplace_back("c_attn.bias", joined("bias"));
  variant->load_state_dict(state);
  return variant;
}

/// Einsum style: the same numbers with the heads as a dim.
inline std::unique_ptr<attention::MultiHeadAttentionEinsum> einsum_style(const attention::MultiHeadAttention& from,
                                                                         bool qkv_bias) {
  auto variant =
      std::make_unique<attention::MultiHeadAttentionEinsum>(from.d_in(), from.d_out(), *from.context_length(), from.dropout.p(),
                                                            from.num_heads(), qkv_bias, from.dropout.generator());
  nn::NamedTensors state = {{"mask", from.mask}, {"b_out", from.out_proj.bias}};
  const auto add = [&](const std::string& name, const Tensor& values) {
    state.emplace_back(name, values.view(state_of(*variant, name).shape()));
  };
  add("W_out", from.out_proj.weight);
  for (const std::string name : {"query", "key", "value"}) {
    add("W_" + name, state_of(from, "W_" + name + ".weight"));
    if (qkv_bias) add("b_" + name, state_of(from, "W_" + name + ".bias"));
  }
  variant->load_state_dict(state);
  return variant;
}

}  // namespace onestep::testing
