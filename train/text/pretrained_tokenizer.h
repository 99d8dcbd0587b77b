#pragma once
// The tokenizers of published models: tokenizer.json as Hugging Face's tokenizers library writes it, with a byte-pair encoding.
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "train/text/bpe_merger.h"
#include "train/text/bpe_vocabulary.h"
#include "train/text/pattern.h"
#include "train/text/tokenizer.h"

namespace onestep::train {

/// The expression that cuts GPT-2's words (src/encoder.py).
inline constexpr const char* kGpt2Words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// A token that is cut out of a text before anything else.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool lstrip = false, rstrip = false;  ///< Takes the white space before or after it.
  bool normalized = false;              ///< Looked for, normalized itself, in the normalized text.
  bool special = false;                 ///< Stands for no text, such as that of a beginning.
};

/// One step of what happens to a text before it is cut into words.
struct NormalizerStep {
  enum class Kind : uint8_t { nfc, prepend, replace };
  Kind kind;
  std::string pattern;  ///< replace: what is replaced,
  std::string text;     ///< and by what; prepend: what is put before a text that is not empty.
};

/// What a tokenizer.json says.
struct TokenizerDescription {
  std::vector<std::string> tokens;  ///< The symbols by id; empty where an id is not in use.
  std::vector<BpeMerge> merges;
  std::vector<AddedToken> added;
  std::vector<NormalizerStep> normalizer;
  bool spaces_become = false;       ///< Metaspace: spaces become its symbol ▁ in what lies between added tokens.
  std::string prefix;               ///< Put before such a text unless it begins with it: a space, or Metaspace's symbol.
  bool prefix_first = false;        ///< Only before one at the start of all.
  std::vector<std::string> splits;  ///< Expressions whose matches, and what lies between them, are words; one after the other.
  bool byte_level = false;          ///< Symbols are bytes, written as in byte_symbols.h; else code points.
  bool byte_fallback = false;       ///< A code point that is no symbol is the tokens <0x00> to <0xFF> of its bytes.
  bool ignore_merges = false;       ///< A word that is a token is that token.
  int32_t unknown = -1;             ///< Of a code point that is no symbol, if there is one;
  bool fuse_unknown = false;        ///< one for several in a row.
  bool decodes_bytes = false;       ///< <0x41> is decoded as A.
  bool decodes_metaspace = false;   ///< ▁ is decoded as a space.
  bool strips_space = false;        ///< One space at the start of a decoded text goes.
  std::vector<int64_t> prompt_prefix;  ///< What the post-processor puts before a text.
  std::string json;                    ///< The file itself.
};

/// Encodes as the tokenizers library does without special tokens around the text: added tokens are cut out; what lies between
/// is normalized and cut into words; their symbols are merged. Bytes that are no UTF-8 are byte tokens, where there are some,
/// else the unknown token. In a text that comes in parts, cuts are before spaces, which begin a word in the expressions of all
/// families.
class PretrainedTokenizer : public Tokenizer {
 public:
  explicit PretrainedTokenizer(TokenizerDescription description);
  PretrainedTokenizer(const PretrainedTokenizer&) = delete;  // merger_ refers to it
  PretrainedTokenizer& operator=(const PretrainedTokenizer&) = delete;

  TokenizerKind kind() const override { return TokenizerKind::bpe; }
  int64_t vocab_size() const override { return static_cast<int64_t>(decoded_.size()); }
  size_t encode_part(const TextPart& part, std::vector<int64_t>& ids) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  std::string to_json() const override { return description_.json; }
  const TokenizerDescription& description() const { return description_; }
  std::vector<int64_t> prompt_prefix() const override { return description_.prompt_prefix; }

 private:
  /// An added token in a text, or its end.
  struct Match {
    size_t begin, end;
    const AddedToken* token = nullptr;
  };
  /// Added tokens, and the places in the list of those that begin with a byte.
  struct AddedTokens {
    std::vector<AddedToken> list;
    std::array<std::vector<size_t>, 256> by_first_byte;
    void add(AddedToken token);
  };

  static Match next_added(std::string_view text, size_t from, const AddedTokens& added);
  size_t last_cut(std::string_view text) const;
  bool begins_word(std::string_view text, size_t at) const;
  std::string normalized(std::string_view text, bool at_start) const;
  void encode_segment(std::string_view text, bool at_start, bool continues, std::vector<int64_t>& ids) const;
  void encode_valid(std::string_view text, bool at_start, bool continues, std::vector<int64_t>& ids) const;
  void encode_normalized(std::string text, bool at_start, bool continues, std::vector<int64_t>& ids) const;
  void encode_word(std::string_view word, std::vector<int64_t>& ids) const;
  void add_symbols(std::string_view word, std::vector<int32_t>& symbols) const;
  void add_bytes(std::string_view bytes, std::vector<int64_t>& ids) const;

  TokenizerDescription description_;
  std::vector<Pattern> splits_;
  std::vector<std::string> decoded_;                                           // what each id is in a text
  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> ids_;  // by symbol; bytes where symbols are bytes
  std::array<int32_t, 256> byte_ids_;                                          // -1 where there is none
  AddedTokens added_, normalized_;                                             // the latter with their normalized content
  size_t longest_added_ = 0;
  bool spaces_begin_words_ = false;  // without splits: no token has Metaspace's symbol after another
  BpeMerger merger_;
};

}  // namespace onestep::train
