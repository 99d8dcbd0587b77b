#pragma once
// Token ids as text for people, one after the other.
#include <cstdint>
#include <optional>
#include <string>

#include "base/utf8.h"
#include "train/text/tokenizer.h"

namespace onestep::train {

/// What ids stand for: in the words of the tokenizer, else their numbers; `<58>` for an id that the tokenizer does not have (a
/// model may know more tokens than the data).
class StreamDecoder {
 public:
  /// `tokenizer` may be null.
  explicit StreamDecoder(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  /// What the text grows by with this token; whole characters only.
  std::string add(int64_t id);
  /// What an unfinished character at the end becomes.
  std::string finish() { return stream_.finish(); }

 private:
  const Tokenizer* tokenizer_;
  std::optional<int64_t> last_;  // what a word adds depends on the one before it: a space or none
  Utf8Stream stream_;
};

}  // namespace onestep::train
