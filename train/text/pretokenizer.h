#pragma once
// GPT-2's pre-tokeniser: the words that byte-pair merges never reach across.
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "train/text/tokenizer.h"

namespace onestep::train {

/// A longer word is cut after this many bytes, at a code point, so that memory stays bounded whatever the text is.
inline constexpr size_t kLongestWord = size_t{1} << 20;

// The pattern of GPT-2's src/encoder.py, with Unicode's White_Space for \s:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// Length in bytes of the first word of valid UTF-8 that is not empty: what that pattern matches there.
size_t word_length_gpt2(std::string_view text);

/// Takes a word, and the index of the special token that it is, or -1.
using VisitWord = std::function<void(std::string_view word, int special)>;

/// Visits the words of a part of a text as far as they are certain whatever follows, of all of it if it is the last part;
/// returns the bytes taken. `specials` (each begins with `<`) are cut out first, the longest where several begin; runs of bytes
/// that are no UTF-8 are words of their own; what lies between is cut by word_length_gpt2.
size_t for_each_word(const TextPart& part, const std::vector<std::string>& specials, const VisitWord& visit);

}  // namespace onestep::train
