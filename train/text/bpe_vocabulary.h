#pragma once
// What byte-pair encoding needs to know.
#include <cstdint>
#include <string>
#include <vector>

namespace onestep::train {

/// Two neighbours and what they become; ids of BpeVocabulary::tokens.
struct BpeMerge {
  int32_t left, right, result;
  bool operator==(const BpeMerge&) const = default;
};

/// What byte-pair encoding needs to know. Every byte is a token, and so is every merge's result.
struct BpeVocabulary {
  std::vector<std::string> tokens;  ///< the bytes of each id
  std::vector<BpeMerge> merges;     ///< in the order in which they are made
  std::vector<int32_t> specials;    ///< ids of tokens that stand for themselves, such as <|endoftext|>; ascending
  bool operator==(const BpeVocabulary&) const = default;
};

}  // namespace onestep::train
