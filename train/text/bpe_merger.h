#pragma once
// The merges of a byte-pair encoding, at work on words.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "train/text/token_pair.h"
#include "train/text/vocabulary_tokenizer.h"

namespace onestep::train {

/// Merges neighbours of a word, the earliest merge first, ties from the left, until none is left.
class BpeMerger {
 public:
  /// In which order the pairs that a merge makes are merged themselves: where they are of an earlier merge than those that are
  /// left, as no trained vocabulary has it, GPT-2's encoder.py and the tokenizers library differ.
  enum class Order { rank_by_rank, one_by_one };
  /// Appends the symbols of a word before anything is merged.
  using Symbols = std::function<void(std::string_view word, std::vector<int32_t>& symbols)>;

  BpeMerger(Symbols symbols, Order order) : symbols_(std::move(symbols)), order_(order) {}

  /// The next merge: `left` and `right` become `result`. A pair that is there already keeps its merge.
  void add(int32_t left, int32_t right, int32_t result);
  /// Appends the ids of a word. Not for several threads at a time.
  void encode(std::string_view word, std::vector<int64_t>& ids) const;

 private:
  struct Rule {
    int32_t rank, result;
  };

  void merge(std::string_view word, std::vector<int64_t>& ids) const;

  Symbols symbols_;
  Order order_;
  std::unordered_map<TokenPair, Rule, TokenPairHash> rules_;
  // What words became: most words of a text have been there before. Emptied when it is full.
  mutable std::unordered_map<std::string, std::vector<int64_t>, StringHash, std::equal_to<>> cache_;
};

}  // namespace onestep::train
