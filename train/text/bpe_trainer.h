#pragma once
// Learns the merges of a byte-pair encoding from text.
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "train/text/bpe_vocabulary.h"
#include "train/text/vocabulary_tokenizer.h"

namespace onestep::train {

/// Counts the words of a text that may come in parts, then merges the most frequent pair of neighbours again and again. Of
/// pairs equally frequent the one with the smaller left id comes first, then the smaller right id. [Sennrich et al. 2016]
class BpeTrainer {
 public:
  /// `specials` are cut out of the text and get the last ids.
  explicit BpeTrainer(std::vector<std::string> specials = {"<|endoftext|>"});

  /// Counts the words of the part, see Tokenizer::encode_part; returns the bytes taken.
  size_t add(const TextPart& part);
  /// The 256 bytes, up to `vocab_size` - 256 - specials merges, the specials. There are fewer merges if no pair is left that
  /// occurs twice; a pair whose text is a token already is passed over. `show(merges)` is called after each merge. Throws
  /// ConfigError unless vocab_size is from 256 + specials to 2^24.
  BpeVocabulary train(int64_t vocab_size, const std::function<void(int64_t)>& show = {}) const;

 private:
  std::vector<std::string> specials_;
  std::unordered_map<std::string, int64_t, StringHash, std::equal_to<>> words_;
};

}  // namespace onestep::train
