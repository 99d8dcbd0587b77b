#pragma once
// GPT-2's byte-level byte-pair encoding.
#include <array>
#include <string>
#include <vector>

#include "train/text/bpe_merger.h"
#include "train/text/bpe_vocabulary.h"
#include "train/text/tokenizer.h"

namespace onestep::train {

/// Cuts text into words (for_each_word), takes each word's bytes as tokens, and merges neighbours, the earliest merge of the
/// vocabulary first, until none is left. Special tokens in the text become their ids. Bytes that are no UTF-8 are words of
/// their own: any bytes go in, and decode(encode(bytes)) == bytes. [Sennrich et al. 2016; GPT-2, src/encoder.py]
class BpeTokenizer : public Tokenizer {
 public:
  /// The vocabulary is one that bpe_files.h has read or bpe_trainer.h made.
  explicit BpeTokenizer(BpeVocabulary vocabulary);

  TokenizerKind kind() const override { return TokenizerKind::bpe; }
  int64_t vocab_size() const override { return static_cast<int64_t>(vocabulary_.tokens.size()); }
  size_t encode_part(const TextPart& part, std::vector<int64_t>& ids) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  std::string to_json() const override;

  const BpeVocabulary& vocabulary() const { return vocabulary_; }

 private:
  BpeVocabulary vocabulary_;
  std::vector<std::string> specials_;  // the texts of vocabulary_.specials
  std::array<int32_t, 256> byte_ids_;
  BpeMerger merger_;
};

}  // namespace onestep::train
