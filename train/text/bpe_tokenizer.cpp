#include "train/text/bpe_tokenizer.h"

#include <array>

#include "train/text/bpe_files.h"
#include "train/text/pretokenizer.h"

namespace onestep::train {
namespace {

/// The tokens of single bytes.
std::array<int32_t, 256> byte_ids(const BpeVocabulary& vocabulary) {
  std::array<int32_t, 256> ids{};
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (token.size() == 1) ids[static_cast<unsigned char>(token[0])] = static_cast<int32_t>(id);
  }
  return ids;
}

BpeMerger::Symbols byte_symbols(const std::array<int32_t, 256>& byte_ids) {
  return [ids = byte_ids](std::string_view word, std::vector<int32_t>& symbols) {
    for (const char byte : word) symbols.push_back(ids[static_cast<unsigned char>(byte)]);
  };
}

}  // namespace

std::string BpeTokenizer::to_json() const { return bpe_to_json(vocabulary_); }

BpeTokenizer::BpeTokenizer(BpeVocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      byte_ids_(byte_ids(vocabulary_)),
      merger_(byte_symbols(byte_ids_), BpeMerger::Order::rank_by_rank) {
  for (const int32_t id : vocabulary_.specials) specials_.push_back(vocabulary_.tokens[static_cast<size_t>(id)]);
  for (const BpeMerge& merge : vocabulary_.merges) merger_.add(merge.left, merge.right, merge.result);
}

size_t BpeTokenizer::encode_part(const TextPart& part, std::vector<int64_t>& ids) const {
  return for_each_word(part, specials_, [&](std::string_view word, int special) {
    if (special >= 0) {
      ids.push_back(vocabulary_.specials[static_cast<size_t>(special)]);
    } else if (word.size() == 1) {
      ids.push_back(byte_ids_[static_cast<unsigned char>(word[0])]);
    } else {
      merger_.encode(word, ids);
    }
  });
}

std::string BpeTokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    check_id(id, vocab_size());
    text += vocabulary_.tokens[static_cast<size_t>(id)];
  }
  return text;
}

}  // namespace onestep::train
