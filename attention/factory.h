#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "attention/attention.h"

namespace onestep::attention {

/// What the attention types are built from. A type without dropout or query/key/value bias takes only 0 and false.
struct AttentionOptions {
  int64_t d_in = 0;
  int64_t d_out = 0;           ///< Width of the result, also of multi_head_wrapper, whose heads get d_out / num_heads each.
  int64_t context_length = 0;  ///< Of the causal types; the others take any number of tokens.
  int64_t num_heads = 1;       ///< Of the multi-head types; the others have one head.
  double dropout = 0.0;
  bool qkv_bias = false;
};

/// The names that make_attention knows, from simple to complete: simplified, self_v1, self_v2, causal, multi_head_wrapper,
/// multi_head.
std::span<const std::string_view> attention_kinds();

/// Builds an attention type by name. Throws ConfigError on an unknown name and on an option that the type does not have, and
/// what the type's constructor throws. `generator` must outlive the module.
std::unique_ptr<Attention> make_attention(std::string_view kind, const AttentionOptions& options,
                                          Generator& generator = default_generator());

}  // namespace onestep::attention
