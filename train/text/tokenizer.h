#pragma once
// Text to token ids and back. The vocabulary travels with the run.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "train/text/tokenizer_kind.h"

namespace onestep::train {

/// A stretch of a text that may continue.
struct TextPart {
  std::string_view text;
  bool last = true;    ///< nothing follows
  int64_t offset = 0;  ///< of its first byte in the whole text
};

/// Text that a tokenizer has no ids for. what() is `encode: offset N: PROBLEM`.
struct EncodeError : ConfigError {
  EncodeError(int64_t offset_in_text, const std::string& the_problem);
  int64_t offset;  ///< in bytes
  std::string problem;
};

/// What a tokenizer does, whatever its kind.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual TokenizerKind kind() const = 0;
  /// Ids are 0 .. vocab_size() - 1.
  virtual int64_t vocab_size() const = 0;
  /// Appends the ids of the part as far as they are certain whatever follows, and of all of it if it is the last; returns the
  /// bytes taken. A text that comes in parts, each beginning with what was left of the one before, gets the ids of the whole.
  /// Throws EncodeError. Not for several threads at a time.
  virtual size_t encode_part(const TextPart& part, std::vector<int64_t>& ids) const = 0;
  /// The ids that come before a text that a model is to continue, such as that of a beginning; in most tokenizers none.
  virtual std::vector<int64_t> prompt_prefix() const { return {}; }
  /// The text of the ids. Throws ConfigError for an id that is none.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  /// `tokenizer.json` of a run: what load_tokenizer reads.
  virtual std::string to_json() const = 0;

  /// Ids of the whole text. Throws EncodeError naming a symbol outside the vocabulary, or a byte that is no UTF-8, and where.
  std::vector<int64_t> encode(std::string_view text) const;
  /// The ids of a text that a model is to continue: prompt_prefix(), then those of the text. Throws EncodeError.
  std::vector<int64_t> encode_prompt(std::string_view text) const;
};

/// One id a byte, 256 in all; any text goes in, and any bytes come out.
class ByteTokenizer : public Tokenizer {
 public:
  TokenizerKind kind() const override { return TokenizerKind::bytes; }
  int64_t vocab_size() const override { return 256; }
  size_t encode_part(const TextPart& part, std::vector<int64_t>& ids) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  std::string to_json() const override;
};

/// Throws ConfigError, naming the id, unless it is one of the vocabulary.
void check_id(int64_t id, int64_t vocab_size);

/// Makes a tokenizer of characters, bytes or words with the vocabulary of the text. Throws ConfigError.
std::unique_ptr<Tokenizer> make_tokenizer(TokenizerKind kind, std::string_view text);

/// Reads a `tokenizer.json` of at most 64 MiB: of a run, or of the tokenizers library. Throws IoError if it is neither.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

/// Whether a folder holds a tokenizer for open_tokenizer.
bool has_tokenizer(const std::filesystem::path& folder);

/// The tokenizer of a folder: the tokenizers library's `tokenizer.json`, else GPT-2's vocab.json and merges.txt (encoder.json
/// and vocab.bpe), else `tokenizer.json` of a run. Throws IoError.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& folder);

/// load_tokenizer on text; `source` stands for the file name in messages.
std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view json, const std::string& source);

}  // namespace onestep::train
