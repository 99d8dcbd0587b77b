#pragma once
// Reading a text of any length in bounded memory.
#include <cstddef>
#include <functional>

#include "train/text/tokenizer.h"

namespace onestep::train {

/// Reads up to `count` bytes to `to`; returns how many, 0 at the end.
using ReadBytes = std::function<size_t(char* to, size_t count)>;

/// Consumes a part; returns the bytes consumed.
using TakePart = std::function<size_t(const TextPart&)>;

/// Passes the text to `take` in parts of some MiB; what it leaves is the beginning of the next part. Throws ConfigError if it
/// leaves 64 MiB: no symbol is that long.
void for_each_part(const ReadBytes& read, const TakePart& take);

}  // namespace onestep::train
