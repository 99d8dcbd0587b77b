#include "train/text/bpe_tokenizer.h"

#include <queue>

#include "train/text/bpe_files.h"
#include "train/text/pretokenizer.h"

namespace onestep::train {
namespace {

constexpr size_t kCachedWords = 1 << 16, kCachedLength = 48;

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// A pair that may be merged: the lowest rank first, then the leftmost.
struct Candidate {
  int32_t rank, at;
  bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

}  // namespace

std::string BpeTokenizer::to_json() const { return bpe_to_json(vocabulary_); }

BpeTokenizer::BpeTokenizer(BpeVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
  for (const int32_t id : vocabulary_.specials) specials_.push_back(vocabulary_.tokens[static_cast<size_t>(id)]);
  for (size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
    const std::string& token = vocabulary_.tokens[id];
    if (token.size() == 1) byte_ids_[static_cast<unsigned char>(token[0])] = static_cast<int32_t>(id);
  }
  rules_.reserve(vocabulary_.merges.size());
  int32_t rank = 0;
  for (const BpeMerge& merge : vocabulary_.merges)
    rules_.emplace(pair_key(merge.left, merge.right), Rule{rank++, merge.result});
}

const BpeTokenizer::Rule* BpeTokenizer::rule(int32_t left, int32_t right) const {
  const auto found = rules_.find(pair_key(left, right));
  return found == rules_.end() ? nullptr : &found->second;
}

size_t BpeTokenizer::encode_part(const TextPart& part, std::vector<int64_t>& ids) const {
  return for_each_word(part, specials_, [&](std::string_view word, int special) {
    if (special < 0) {
      encode_word(word, ids);
    } else {
      ids.push_back(vocabulary_.specials[static_cast<size_t>(special)]);
    }
  });
}

void BpeTokenizer::encode_word(std::string_view word, std::vector<int64_t>& ids) const {
  if (word.size() == 1) {
    ids.push_back(byte_ids_[static_cast<unsigned char>(word[0])]);
    return;
  }
  if (word.size() > kCachedLength) return merge_word(word, ids);
  auto found = cache_.find(word);
  if (found == cache_.end()) {
    if (cache_.size() >= kCachedWords) cache_.clear();
    std::vector<int64_t> made;
    merge_word(word, made);
    found = cache_.emplace(word, std::move(made)).first;
  }
  ids.insert(ids.end(), found->second.begin(), found->second.end());
}

// Merges with a heap of the pairs that have a rule: n log n for a word of n bytes.
void BpeTokenizer::merge_word(std::string_view word, std::vector<int64_t>& ids) const {
  struct Symbol {
    int32_t id, previous, next;  // a list; id -1 where a symbol went into the one before
  };
  const auto size = static_cast<int32_t>(word.size());
  std::vector<Symbol> symbols(word.size());
  for (int32_t i = 0; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(word[static_cast<size_t>(i)]);
    symbols[static_cast<size_t>(i)] = {byte_ids_[byte], i - 1, i + 1 < size ? i + 1 : -1};
  }
  const auto symbol = [&](int32_t at) -> Symbol& { return symbols[static_cast<size_t>(at)]; };
  const auto rule_at = [&](int32_t at) {
    return at < 0 || symbol(at).id < 0 || symbol(at).next < 0 ? nullptr : rule(symbol(at).id, symbol(symbol(at).next).id);
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto push = [&](int32_t at) {
    if (const Rule* found = rule_at(at)) heap.push({found->rank, at});
  };
  for (int32_t i = 0; i + 1 < size; ++i) push(i);

  // All pairs of one rank from left to right, and only then the new pairs, whatever their rank.
  std::vector<int32_t> changed;
  while (!heap.empty()) {
    const int32_t rank = heap.top().rank;
    changed.clear();
    for (; !heap.empty() && heap.top().rank == rank; heap.pop()) {
      const int32_t at = heap.top().at;
      const Rule* found = rule_at(at);
      if (found == nullptr || found->rank != rank) continue;  // a neighbour was merged away meanwhile
      Symbol& left = symbol(at);
      Symbol& right = symbol(left.next);
      left.id = found->result;
      left.next = right.next;
      right.id = -1;
      if (left.next >= 0) symbol(left.next).previous = at;
      changed.insert(changed.end(), {left.previous, at});
    }
    for (const int32_t at : changed) push(at);
  }
  for (int32_t at = 0; at >= 0; at = symbol(at).next) ids.push_back(symbol(at).id);
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
