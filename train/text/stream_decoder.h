#pragma once
// Token ids as text for people, one after the other.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "train/text/tokenizer.h"

namespace onestep {
class Utf8Stream;
}

namespace onestep::train {

/// What ids stand for: in the words of the tokenizer, else their numbers; `<58>` for an id that the tokenizer does not have (a
/// model may know more tokens than the data).
class StreamDecoder {
 public:
  /// `tokenizer` may be null.
  explicit StreamDecoder(const Tokenizer* tokenizer);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&& other) noexcept;
  StreamDecoder& operator=(StreamDecoder&& other) noexcept;

  /// What the text grows by with this token; whole characters only.
  std::string add(int64_t id);
  /// What an unfinished character at the end becomes.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  std::optional<int64_t> last_;  // what a word adds depends on the one before it: a space or none
  std::unique_ptr<Utf8Stream> stream_;
};

}  // namespace onestep::train
