#include "train/tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "autograd/error.h"
#include "train/json_reader.h"
#include "train/utf8.h"

namespace onestep::train {
namespace {

using nlohmann::json;

constexpr int64_t kMaxTokenizerBytes = int64_t{64} << 20;

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

// Calls visit(symbol) for each symbol of UTF-8 text.
template <class Visit>
void for_each_symbol(const std::string& kind, std::string_view text, Visit visit) {
  const bool words = kind == "word";
  for (size_t at = 0; at < text.size();) {
    if (words && is_space(text[at])) {
      ++at;
      continue;
    }
    const size_t length = words ? word_length(text, at) : utf8_length(text, at);
    visit(text.substr(at, length));
    at += length;
  }
}

void check_utf8(std::string_view text) {
  const size_t invalid = find_invalid_utf8(text);
  check<ConfigError>(invalid == std::string_view::npos, "tokenizer: the text is not UTF-8: byte ",
                     quote(text.substr(std::min(invalid, text.size()), 1)), " at offset ", invalid,
                     " (tokenizer byte takes any bytes)");
}

// `"é" (U+00E9)` for a character, `"word"` for more than one.
std::string describe_symbol(std::string_view symbol) {
  if (utf8_length(symbol, 0) != symbol.size()) return quote(symbol);
  char code[16];
  std::snprintf(code, sizeof code, " (U+%04X)", code_point(symbol));
  return quote(symbol) + code;
}

void check_id(int64_t id, int64_t vocab_size) {
  check<ConfigError>(id >= 0 && id < vocab_size, "decode: token id must be from 0 to ", vocab_size - 1, ": got ", id);
}

}  // namespace

std::vector<int64_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  ids.reserve(text.size());
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

std::string ByteTokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    check_id(id, vocab_size());
    text += static_cast<char>(id);
  }
  return text;
}

std::string ByteTokenizer::to_json() const { return "{\"kind\": \"byte\"}\n"; }

VocabularyTokenizer VocabularyTokenizer::from_text(const std::string& kind, std::string_view text) {
  check_utf8(text);
  std::set<std::string, std::less<>> symbols;
  for_each_symbol(kind, text, [&](std::string_view symbol) {
    if (!symbols.contains(symbol)) symbols.emplace(symbol);
  });
  return VocabularyTokenizer(kind, {symbols.begin(), symbols.end()});
}

VocabularyTokenizer::VocabularyTokenizer(std::string kind, std::vector<std::string> vocabulary)
    : kind_(std::move(kind)), vocabulary_(std::move(vocabulary)) {
  check<ConfigError>(!vocabulary_.empty(), "tokenizer: the vocabulary is empty (the text holds no ", kind_, ")");
  for (size_t i = 0; i < vocabulary_.size(); ++i) {
    const std::string& symbol = vocabulary_[i];
    check<ConfigError>(find_invalid_utf8(symbol) == std::string::npos, "tokenizer: symbol ", i,
                       " is not UTF-8: ", quote(symbol));
    size_t symbols = 0;
    for_each_symbol(kind_, symbol, [&](std::string_view part) { symbols += part.size() == symbol.size() ? 1 : 2; });
    check<ConfigError>(symbols == 1, "tokenizer: symbol ", i, " is not one ", kind_, ": ", quote(symbol));
    check<ConfigError>(i == 0 || vocabulary_[i - 1] < symbol,
                       "tokenizer: the vocabulary is not sorted, or names a symbol twice: ", quote(symbol), " at ", i);
    ids_.emplace(symbol, static_cast<int64_t>(i));
  }
}

std::vector<int64_t> VocabularyTokenizer::encode(std::string_view text) const {
  check_utf8(text);
  std::vector<int64_t> ids;
  std::string key;
  for_each_symbol(kind_, text, [&](std::string_view symbol) {
    key.assign(symbol);
    const auto found = ids_.find(key);
    check<ConfigError>(found != ids_.end(), "encode: ", kind_, " ", describe_symbol(symbol), " at position ", ids.size(),
                       " is not in the vocabulary of ", vocabulary_.size());
    ids.push_back(found->second);
  });
  return ids;
}

std::string VocabularyTokenizer::decode(std::span<const int64_t> ids) const {
  constexpr std::string_view kCloses = ".,:;?!)]}", kOpens = "([{";
  std::string text;
  for (const int64_t id : ids) {
    check_id(id, vocab_size());
    const std::string& symbol = vocabulary_[static_cast<size_t>(id)];
    const bool touches = text.empty() || kOpens.find(text.back()) != kOpens.npos || kCloses.find(symbol[0]) != kCloses.npos;
    if (kind_ == "word" && !touches) text += ' ';
    text += symbol;
  }
  return text;
}

std::string VocabularyTokenizer::to_json() const {
  return nlohmann::ordered_json{{"kind", kind_}, {"vocabulary", vocabulary_}}.dump() + "\n";
}

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind, std::string_view text) {
  if (kind == "byte") return std::make_unique<ByteTokenizer>();
  check<ConfigError>(kind == "char" || kind == "word", "tokenizer: must be char, byte or word: got ", quote(kind));
  return std::make_unique<VocabularyTokenizer>(VocabularyTokenizer::from_text(kind, text));
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  const json root = read_json<IoError>(path, kMaxTokenizerBytes);
  check<IoError>(root.is_object(), path, ": must be an object: got ", brief(root));
  check<IoError>(root.contains("kind"), path, ": /kind: missing: must be char, byte or word");
  const json& kind = root["kind"];
  const bool byte = kind == "byte";
  check<IoError>(byte || kind == "char" || kind == "word", path, ": /kind: must be char, byte or word: got ", brief(kind));
  for (const auto& [key, value] : root.items()) {
    check<IoError>(key == "kind" || (key == "vocabulary" && !byte), path, ": ", json_pointer("", key), ": unknown key");
  }
  if (byte) return std::make_unique<ByteTokenizer>();

  check<IoError>(root.contains("vocabulary"), path, ": /vocabulary: missing: must be a list of strings");
  const json& list = root["vocabulary"];
  check<IoError>(list.is_array(), path, ": /vocabulary: must be a list of strings: got ", brief(list));
  std::vector<std::string> vocabulary;
  for (const json& symbol : list) {
    check<IoError>(symbol.is_string(), path, ": /vocabulary/", vocabulary.size(), ": must be a string: got ", brief(symbol));
    vocabulary.push_back(symbol.get<std::string>());
  }
  try {
    return std::make_unique<VocabularyTokenizer>(kind.get<std::string>(), std::move(vocabulary));
  } catch (const ConfigError& error) {
    fail<IoError>(path, ": /vocabulary: ", error.what());
  }
}

}  // namespace onestep::train
