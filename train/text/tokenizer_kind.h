#pragma once
// What a tokenizer's tokens are.
#include <array>
#include <cstdint>
#include <string_view>

#include "base/enum_names.h"

namespace onestep::train {

/// What a token of a text is; the names are those of a config's data.tokenizer and of tokenizer files.
enum class TokenizerKind : uint8_t { characters, bytes, words, bpe };
constexpr auto names(TokenizerKind /*all*/) { return std::to_array<std::string_view>({"char", "byte", "word", "bpe"}); }

}  // namespace onestep::train
