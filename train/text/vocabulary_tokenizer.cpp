#include "train/text/vocabulary_tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/format.h"
#include "base/json_reader.h"
#include "base/utf8.h"

namespace onestep::train {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool in_word(std::string_view text, size_t at) { return at < text.size() && !is_space(text[at]) && !is_punctuation(text[at]); }

// The ' of don't and the - of well-known.
bool joins_words(std::string_view text, size_t at) {
  return (text[at] == '\'' || text[at] == '-') && at > 0 && in_word(text, at - 1) && in_word(text, at + 1);
}

size_t word_length(std::string_view text, size_t at) {
  if (!in_word(text, at)) return 1;
  size_t end = at;
  while (in_word(text, end) || (end < text.size() && joins_words(text, end))) ++end;
  return end - at;
}

// Calls visit(symbol, offset) for each symbol of the part that is certain; returns the bytes taken.
template <class Visit>
size_t for_each_symbol(bool words, const TextPart& part, Visit visit) {
  const std::string_view text = part.text;
  // What ends in the last 3 bytes may continue: in a longer code point, or in a word joined by ' or -.
  const size_t certain = part.last ? text.size() : text.size() - std::min<size_t>(text.size(), 3);
  size_t at = 0;
  while (at < certain) {
    if (words && is_space(text[at])) {
      ++at;
      continue;
    }
    const size_t length = words ? word_length(text, at) : std::max<size_t>(utf8_length(text, at), 1);
    if (at + length > certain) break;
    const std::string_view symbol = text.substr(at, length);
    const int64_t offset = part.offset + static_cast<int64_t>(at);
    if (symbol.size() > 1 || static_cast<unsigned char>(symbol[0]) >= 0x80) {
      const size_t invalid = find_invalid_utf8(symbol);
      if (invalid < length)
        throw EncodeError(offset + static_cast<int64_t>(invalid), "not UTF-8: byte " + quote(symbol.substr(invalid, 1)) +
                                                                      " (data.tokenizer = byte or bpe takes any bytes)");
    }
    visit(symbol, offset);
    at += length;
  }
  return at;
}

// `"é" (U+00E9)` for a character, `"word"` for more than one.
std::string describe_symbol(std::string_view symbol) {
  if (utf8_length(symbol, 0) != symbol.size()) return quote(symbol);
  char code[16];
  std::snprintf(code, sizeof code, " (U+%04X)", code_point(symbol));
  return quote(symbol) + code;
}

}  // namespace

VocabularyTokenizer::VocabularyTokenizer(TokenizerKind kind, std::vector<std::string> vocabulary)
    : kind_(kind), vocabulary_(std::move(vocabulary)) {
  ONESTEP_CHECK(ConfigError, !vocabulary_.empty(), "tokenizer: the vocabulary is empty (the text holds no ", name_of(kind_),
                ")");
  const bool words = kind_ == TokenizerKind::words;
  for (size_t i = 0; i < vocabulary_.size(); ++i) {
    const std::string& symbol = vocabulary_[i];
    ONESTEP_CHECK(ConfigError, find_invalid_utf8(symbol) == std::string::npos, "tokenizer: symbol ", i,
                  " is not UTF-8: ", quote(symbol));
    size_t symbols = 0;
    for_each_symbol(words, {symbol}, [&](std::string_view part, int64_t) { symbols += part.size() == symbol.size() ? 1 : 2; });
    ONESTEP_CHECK(ConfigError, symbols == 1, "tokenizer: symbol ", i, " is not one ", name_of(kind_), ": ", quote(symbol));
    ONESTEP_CHECK(ConfigError, i == 0 || vocabulary_[i - 1] < symbol,
                  "tokenizer: the vocabulary is not sorted, or names a symbol twice: ", quote(symbol), " at ", i);
    if (words) ids_.emplace(symbol, static_cast<int64_t>(i));
  }
  if (words) return;
  ids_by_code_.assign(code_point(vocabulary_.back()) + 1, -1);
  for (size_t i = 0; i < vocabulary_.size(); ++i) ids_by_code_[code_point(vocabulary_[i])] = static_cast<int32_t>(i);
}

// The id of a symbol, or -1.
int64_t VocabularyTokenizer::find(std::string_view symbol) const {
  if (kind_ == TokenizerKind::words) {
    const auto found = ids_.find(symbol);
    return found == ids_.end() ? -1 : found->second;
  }
  const uint32_t code = code_point(symbol);
  return code < ids_by_code_.size() ? ids_by_code_[code] : -1;
}

size_t VocabularyTokenizer::encode_part(const TextPart& part, std::vector<int64_t>& ids) const {
  return for_each_symbol(kind_ == TokenizerKind::words, part, [&](std::string_view symbol, int64_t offset) {
    const int64_t id = find(symbol);
    if (id < 0)
      throw EncodeError(offset, std::string(name_of(kind_)) + " " + describe_symbol(symbol) + " is not in the vocabulary of " +
                                    std::to_string(vocabulary_.size()));
    ids.push_back(id);
  });
}

std::string VocabularyTokenizer::decode(std::span<const int64_t> ids) const {
  constexpr std::string_view kCloses = ".,:;?!)]}", kOpens = "([{";
  std::string text;
  for (const int64_t id : ids) {
    check_id(id, vocab_size());
    const std::string& symbol = vocabulary_[static_cast<size_t>(id)];
    const bool touches =
        text.empty() || kOpens.find(text.back()) != std::string_view::npos || kCloses.find(symbol[0]) != std::string_view::npos;
    if (kind_ == TokenizerKind::words && !touches) text += ' ';
    text += symbol;
  }
  return text;
}

std::string VocabularyTokenizer::to_json() const {
  return nlohmann::ordered_json{{"kind", name_of(kind_)}, {"vocabulary", vocabulary_}}.dump() + "\n";
}

VocabularyBuilder::VocabularyBuilder(TokenizerKind kind) : kind_(kind) {
  if (kind_ == TokenizerKind::characters) codes_.resize(0x110000);
}

size_t VocabularyBuilder::add(const TextPart& part) {
  const bool words = kind_ == TokenizerKind::words;
  return for_each_symbol(words, part, [&](std::string_view symbol, int64_t) {
    if (!words) {
      codes_[code_point(symbol)] = true;
    } else if (!words_.contains(symbol)) {
      words_.emplace(symbol);
    }
  });
}

std::unique_ptr<VocabularyTokenizer> VocabularyBuilder::finish() const {
  std::vector<std::string> symbols(words_.begin(), words_.end());
  for (uint32_t code = 0; code < codes_.size(); ++code) {
    if (codes_[code]) symbols.push_back(to_utf8(code));
  }
  // What a run writes it reads back; there is a little more in the file.
  constexpr size_t kMost = kMaxJsonMemory - 4096;
  const size_t bytes = std::accumulate(symbols.begin(), symbols.end(), size_t{0},
                                       [](size_t sum, const std::string& symbol) { return sum + json_string_memory(symbol); });
  ONESTEP_CHECK(ConfigError, bytes <= kMost, "tokenizer: a vocabulary of ", symbols.size(), ' ', name_of(kind_),
                "s would take more than ", format_bytes(kMaxJsonMemory),
                " of memory to be read back (data.tokenizer = bpe or byte takes any text)");
  std::sort(symbols.begin(), symbols.end());
  return std::make_unique<VocabularyTokenizer>(kind_, std::move(symbols));
}

}  // namespace onestep::train
