#pragma once
// Text to token ids and back. The vocabulary comes from the data and travels with the run.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace onestep::train {

/// What a tokenizer does, whatever its kind.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The name in the config: char, byte, word.
  virtual std::string kind() const = 0;
  /// Ids are 0 .. vocab_size() - 1.
  virtual int64_t vocab_size() const = 0;
  /// Ids of the text. Throws ConfigError naming a symbol outside the vocabulary and its position, or a byte that is no UTF-8.
  virtual std::vector<int64_t> encode(std::string_view text) const = 0;
  /// The text of the ids. Throws ConfigError for an id that is none.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  /// `tokenizer.json` of a run: what load_tokenizer reads.
  virtual std::string to_json() const = 0;
};

/// One id a byte, 256 in all; any text goes in, and any bytes come out.
class ByteTokenizer : public Tokenizer {
 public:
  std::string kind() const override { return "byte"; }
  int64_t vocab_size() const override { return 256; }
  std::vector<int64_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  std::string to_json() const override;
};

/// One id a symbol of a sorted vocabulary (by bytes, which for UTF-8 is by code point). Kind `char`: a symbol is a Unicode code
/// point, and decode(encode(text)) == text. Kind `word`: text is split at ASCII white space; an ASCII punctuation mark is a
/// symbol of its own, but ' and - between two letters or digits belong to the word; case is kept. White space is not:
/// decode() puts one space between words, none before .,:;?!)]} and none after ([{, so encode(decode(ids)) == ids.
class VocabularyTokenizer : public Tokenizer {
 public:
  /// The vocabulary is every symbol of the text. Throws ConfigError if the text is empty or no UTF-8.
  static VocabularyTokenizer from_text(const std::string& kind, std::string_view text);
  /// Throws ConfigError unless the vocabulary is sorted, without repetition, and of symbols of the kind.
  VocabularyTokenizer(std::string kind, std::vector<std::string> vocabulary);

  std::string kind() const override { return kind_; }
  int64_t vocab_size() const override { return static_cast<int64_t>(vocabulary_.size()); }
  std::vector<int64_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  std::string to_json() const override;

 private:
  std::string kind_;
  std::vector<std::string> vocabulary_;
  std::unordered_map<std::string, int64_t> ids_;
};

/// Makes the tokenizer that data.tokenizer names, with the vocabulary of the text. Throws ConfigError.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind, std::string_view text);

/// Reads a `tokenizer.json` of at most 64 MiB. Throws IoError if it is not what to_json() writes.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

}  // namespace onestep::train
