#include "train/models/gguf_vocabulary.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "train/text/bpe_tokenizer.h"
#include "train/text/byte_symbols.h"
#include "train/text/pretrained_tokenizer.h"

namespace onestep::train {
namespace {

// Types of tokens, as in llama.cpp's enum llama_token_type.
constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

/// Expressions that cut words, and llama.cpp's names of them.
constexpr std::array<std::pair<std::string_view, const char*>, 3> kWords{
    {{kGpt2Words, "gpt-2"},
     {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      "llama-bpe"},
     {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      "qwen2"}}};

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges;

  /// The token of an id, which need not be the next one.
  void set(int64_t id, const std::string& token, int32_t type) {
    while (std::ssize(tokens) <= id) {
      tokens.push_back("[PAD" + std::to_string(tokens.size()) + "]");
      types.push_back(kUnused);
    }
    tokens[static_cast<size_t>(id)] = token;
    types[static_cast<size_t>(id)] = type;
  }
};

Vocabulary of_bpe(const BpeVocabulary& bpe) {
  Vocabulary out;
  const auto symbol = [&](int32_t id) { return symbol_of_bytes(bpe.tokens[static_cast<size_t>(id)]); };
  for (int32_t id = 0; id < static_cast<int32_t>(bpe.tokens.size()); ++id) out.set(id, symbol(id), kNormal);
  for (const int32_t id : bpe.specials) out.set(id, bpe.tokens[static_cast<size_t>(id)], kControl);
  for (const BpeMerge& merge : bpe.merges) out.merges.push_back(symbol(merge.left) + ' ' + symbol(merge.right));
  return out;
}

Vocabulary of_description(const TokenizerDescription& d) {
  Vocabulary out;
  for (size_t id = 0; id < d.tokens.size(); ++id) {
    const std::string& token = d.tokens[id];
    const bool is_byte = d.byte_fallback && token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
    if (!token.empty()) out.set(static_cast<int64_t>(id), token, is_byte ? kByte : kNormal);
  }
  for (const AddedToken& token : d.added) out.set(token.id, token.content, token.special ? kControl : kUserDefined);
  if (d.unknown >= 0) out.types[static_cast<size_t>(d.unknown)] = kUnknown;
  for (const BpeMerge& merge : d.merges)
    out.merges.push_back(d.tokens[static_cast<size_t>(merge.left)] + ' ' + d.tokens[static_cast<size_t>(merge.right)]);
  return out;
}

/// llama.cpp's name of the way in which words are cut.
std::string words_of(const TokenizerDescription& d) {
  const std::string_view split = d.splits.size() == 1 ? std::string_view(d.splits[0]) : "";
  const auto* const known = std::find_if(kWords.begin(), kWords.end(), [&](const auto& words) { return words.first == split; });
  ONESTEP_CHECK(ConfigError, known != kWords.end(), "export: the tokenizer cuts words by ",
                d.splits.empty() ? "nothing" : quote(d.splits[0]), ", which is not that of GPT-2, Llama 3 or Qwen2");
  return known->second;
}

}  // namespace

void add_vocabulary(GgufWriter& file, const Tokenizer* tokenizer, int64_t vocab_size,
                    const std::vector<int64_t>& eos_token_ids) {
  const auto* const bpe = dynamic_cast<const BpeTokenizer*>(tokenizer);
  const auto* const pretrained = dynamic_cast<const PretrainedTokenizer*>(tokenizer);
  if (bpe == nullptr && pretrained == nullptr) return file.add("tokenizer.ggml.model", std::string("none"));
  Vocabulary vocabulary = bpe != nullptr ? of_bpe(bpe->vocabulary()) : of_description(pretrained->description());
  if (std::ssize(vocabulary.tokens) < vocab_size)
    vocabulary.set(vocab_size - 1, "[PAD" + std::to_string(vocab_size - 1) + "]", kUnused);
  const bool bytes = bpe != nullptr || pretrained->description().byte_level;
  file.add("tokenizer.ggml.model", std::string(bytes ? "gpt2" : "llama"));
  if (bytes) file.add("tokenizer.ggml.pre", bpe != nullptr ? std::string("gpt-2") : words_of(pretrained->description()));
  file.add("tokenizer.ggml.tokens", vocabulary.tokens);
  file.add("tokenizer.ggml.token_type", vocabulary.types);
  if (bytes) {
    file.add("tokenizer.ggml.merges", vocabulary.merges);
  } else {
    std::vector<float> scores;  // SentencePiece's: the earlier a piece was learned, the higher
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
      scores.push_back(vocabulary.types[id] == kNormal ? -static_cast<float>(id) : 0);
    file.add("tokenizer.ggml.scores", scores);
  }
  const std::vector<int64_t> prefix = tokenizer->prompt_prefix();
  if (!prefix.empty()) file.add("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(prefix[0]));
  if (!eos_token_ids.empty()) file.add("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(eos_token_ids[0]));
  if (pretrained != nullptr && pretrained->description().unknown >= 0)
    file.add("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(pretrained->description().unknown));
}

}  // namespace onestep::train
