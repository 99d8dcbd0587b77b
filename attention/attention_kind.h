#pragma once
// The types of attention by name.
#include <array>
#include <cstdint>
#include <string_view>

#include "base/enum_names.h"

namespace onestep::attention {

/// What make_attention builds, from simple to complete (attention/README.md).
enum class AttentionKind : uint8_t {
  simplified,
  self_v1,
  self_v2,
  causal,
  multi_head_wrapper,
  multi_head,
  einsum,
  fused_qkv,
};
constexpr auto names(AttentionKind /*all*/) {
  return std::to_array<std::string_view>(
      {"simplified", "self_v1", "self_v2", "causal", "multi_head_wrapper", "multi_head", "einsum", "fused_qkv"});
}

}  // namespace onestep::attention
