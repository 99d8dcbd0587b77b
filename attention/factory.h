#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "attention/attention.h"
#include "attention/options.h"
#include "autograd/random/generator.h"

namespace onestep::attention {

/// The names that make_attention knows, from simple to complete: simplified, self_v1, self_v2, causal, multi_head_wrapper,
/// multi_head, einsum, fused_qkv.
std::span<const std::string_view> attention_kinds();

/// Builds an attention type by name. Throws ConfigError on an unknown name and on an option that the type does not have, and
/// what the type's constructor throws. `generator` must outlive the module.
std::unique_ptr<Attention> make_attention(std::string_view kind, const Options& options,
                                          Generator& generator = default_generator());

}  // namespace onestep::attention
