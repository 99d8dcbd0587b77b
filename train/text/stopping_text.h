#pragma once
// The text of generated tokens up to where it stops.
#include <cstdint>
#include <string>
#include <vector>

#include "train/text/stream_decoder.h"

namespace onestep::train {

/// Where a generated text stops: before the first of these strings, or at one of these tokens.
struct Stops {
  std::vector<std::string> strings = {};
  std::vector<int64_t> ids = {};
};

/// Decodes tokens one by one, holding back what may be the beginning of a stop string.
class StoppingText {
 public:
  /// `tokenizer` may be null; `stops` has no empty string. Both must outlive it.
  StoppingText(const Tokenizer* tokenizer, const Stops& stops) : text_(tokenizer), stops_(stops) {}

  /// Takes a token of the prompt, which stops nothing, and returns its text.
  std::string follow(int64_t id) { return text_.add(id); }
  /// What the text grows by with this token; nothing once it has stopped. Neither a stop string nor a stop token is part of it.
  std::string add(int64_t id);
  /// What was held back, where the text ends without a stop.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  /// Gives out of `held_` what cannot belong to a stop string.
  std::string release();

  StreamDecoder text_;
  const Stops& stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace onestep::train
