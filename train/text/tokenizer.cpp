#include "train/text/tokenizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "train/text/bpe_files.h"
#include "train/text/bpe_tokenizer.h"
#include "train/text/pretrained_tokenizer.h"
#include "train/text/pretrained_tokenizer_file.h"
#include "train/text/vocabulary_tokenizer.h"

namespace onestep::train {
namespace {

using nlohmann::json;

constexpr int64_t kMaxTokenizerBytes = int64_t{64} << 20;
constexpr size_t kMaxTokenizerMemory = size_t{256} << 20;  // of several 100,000 tokens and merges
constexpr const char* kKinds = "must be char, byte, word or bpe";

void check_keys(const json& root, const std::vector<std::string>& keys, const std::string& source) {
  for (const auto& [key, value] : root.items()) {
    ONESTEP_CHECK(IoError, std::find(keys.begin(), keys.end(), key) != keys.end(), source, ": ", json_pointer("", key),
                  ": unknown key");
  }
}

std::unique_ptr<Tokenizer> read_vocabulary(TokenizerKind kind, const json& root, const std::string& source) {
  check_keys(root, {"kind", "vocabulary"}, source);
  ONESTEP_CHECK(IoError, root.contains("vocabulary"), source, ": /vocabulary: missing: must be a list of strings");
  const json& list = root["vocabulary"];
  ONESTEP_CHECK(IoError, list.is_array(), source, ": /vocabulary: must be a list of strings: got ", brief(list));
  std::vector<std::string> vocabulary;
  for (const json& symbol : list) {
    ONESTEP_CHECK(IoError, symbol.is_string(), source, ": /vocabulary/", vocabulary.size(), ": must be a string: got ",
                  brief(symbol));
    vocabulary.push_back(symbol.get<std::string>());
  }
  try {
    return std::make_unique<VocabularyTokenizer>(kind, std::move(vocabulary));
  } catch (const ConfigError& error) {
    fail<IoError>(source, ": /vocabulary: ", error.what());
  }
}

}  // namespace

EncodeError::EncodeError(int64_t offset_in_text, const std::string& the_problem)
    : ConfigError("encode: offset " + std::to_string(offset_in_text) + ": " + the_problem),
      offset(offset_in_text),
      problem(the_problem) {}

std::vector<int64_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  encode_part({text}, ids);
  return ids;
}

std::vector<int64_t> Tokenizer::encode_prompt(std::string_view text) const {
  std::vector<int64_t> ids = prompt_prefix();
  encode_part({text}, ids);
  return ids;
}

void check_id(int64_t id, int64_t vocab_size) {
  ONESTEP_CHECK(ConfigError, id >= 0 && id < vocab_size, "decode: token id must be from 0 to ", vocab_size - 1, ": got ", id);
}

size_t ByteTokenizer::encode_part(const TextPart& part, std::vector<int64_t>& ids) const {
  ids.reserve(ids.size() + part.text.size());
  for (const char c : part.text) ids.push_back(static_cast<unsigned char>(c));
  return part.text.size();
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

std::unique_ptr<Tokenizer> make_tokenizer(TokenizerKind kind, std::string_view text) {
  if (kind == TokenizerKind::bytes) return std::make_unique<ByteTokenizer>();
  ONESTEP_CHECK(ConfigError, kind != TokenizerKind::bpe, "tokenizer: must be char, byte or word: got \"bpe\"");
  VocabularyBuilder builder(kind);
  builder.add({text});
  return builder.finish();
}

std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view text, const std::string& source) {
  const json root = parse_json<IoError>(text, source, kMaxTokenizerMemory);
  ONESTEP_CHECK(IoError, root.is_object(), source, ": must be an object: got ", brief(root));
  if (is_tokenizer_description(root))
    return std::make_unique<PretrainedTokenizer>(read_tokenizer_description(root, std::string(text), source));
  ONESTEP_CHECK(IoError, root.contains("kind"), source, ": /kind: missing: ", kKinds);
  const json& word = root["kind"];
  const auto kind = value_named<TokenizerKind>(word.is_string() ? word.get_ref<const std::string&>() : "");
  ONESTEP_CHECK(IoError, kind.has_value(), source, ": /kind: ", kKinds, ": got ", brief(word));
  if (kind == TokenizerKind::bpe) {
    check_keys(root, {"kind", "vocab", "merges"}, source);
    return std::make_unique<BpeTokenizer>(bpe_from_json(root, source));
  }
  if (kind != TokenizerKind::bytes) return read_vocabulary(*kind, root, source);
  check_keys(root, {"kind"}, source);
  return std::make_unique<ByteTokenizer>();
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  const std::string text = read_file(path, kMaxTokenizerBytes);
  ONESTEP_CHECK(IoError, !text.empty(), path, ": is empty");
  return parse_tokenizer(text, path);
}

namespace {

constexpr const char* kOfRun = "tokenizer.json";

bool has_gpt2_files(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / "vocab.json") || std::filesystem::exists(folder / "encoder.json");
}

}  // namespace

bool has_tokenizer(const std::filesystem::path& folder) {
  return has_gpt2_files(folder) || std::filesystem::exists(folder / kOfRun);
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& folder) {
  const std::filesystem::path at = folder;
  ONESTEP_CHECK(IoError, has_tokenizer(at), folder,
                ": holds no tokenizer (neither tokenizer.json of a run, nor vocab.json and merges.txt)");
  std::unique_ptr<Tokenizer> own;
  if (std::filesystem::exists(at / kOfRun)) own = load_tokenizer((at / kOfRun).string());
  // vocab.json beside the tokenizers library's file is a part of it alone.
  const bool whole = dynamic_cast<const PretrainedTokenizer*>(own.get()) != nullptr;
  if (has_gpt2_files(at) && !whole) return std::make_unique<BpeTokenizer>(read_bpe_folder(folder));
  return own;
}

}  // namespace onestep::train
