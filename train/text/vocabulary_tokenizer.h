#pragma once
// Tokenizers whose vocabulary is every symbol of a text: characters or words.
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "train/text/tokenizer.h"

namespace onestep::train {

/// Hashes strings and views alike, so that a table of strings is searched without a copy.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/// One id a symbol of a sorted vocabulary (by bytes, which for UTF-8 is by code point). Kind characters: a symbol is a Unicode
/// code point, and decode(encode(text)) == text. Kind words: text is split at ASCII white space; an ASCII punctuation mark is a
/// symbol of its own, but ' and - between two letters or digits belong to the word; case is kept. White space is not:
/// decode() puts one space between words, none before .,:;?!)]} and none after ([{, so encode(decode(ids)) == ids.
class VocabularyTokenizer : public Tokenizer {
 public:
  /// Throws ConfigError unless the vocabulary is sorted, without repetition, and of symbols of the kind.
  VocabularyTokenizer(TokenizerKind kind, std::vector<std::string> vocabulary);

  TokenizerKind kind() const override { return kind_; }
  int64_t vocab_size() const override { return static_cast<int64_t>(vocabulary_.size()); }
  size_t encode_part(const TextPart& part, std::vector<int64_t>& ids) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  std::string to_json() const override;

 private:
  int64_t find(std::string_view symbol) const;

  TokenizerKind kind_;
  std::vector<std::string> vocabulary_;
  std::vector<int32_t> ids_by_code_;                                           // char: by code point, -1 where there is none
  std::unordered_map<std::string, int64_t, StringHash, std::equal_to<>> ids_;  // word
};

/// Collects the symbols of a text that may come in parts.
class VocabularyBuilder {
 public:
  /// `kind` is characters or words.
  explicit VocabularyBuilder(TokenizerKind kind);
  /// Takes the symbols of the part, see Tokenizer::encode_part; returns the bytes taken. Throws EncodeError if it is not UTF-8.
  size_t add(const TextPart& part);
  /// The tokenizer of these symbols. Throws ConfigError if there was none.
  std::unique_ptr<VocabularyTokenizer> finish() const;

 private:
  TokenizerKind kind_;
  std::vector<bool> codes_;  // char: which code points occur
  std::unordered_set<std::string, StringHash, std::equal_to<>> words_;
};

}  // namespace onestep::train
