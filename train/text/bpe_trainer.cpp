#include "train/text/bpe_trainer.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <unordered_set>

#include "train/text/bpe_files.h"
#include "train/text/pretokenizer.h"
#include "train/text/token_pair.h"

namespace onestep::train {
namespace {

constexpr int64_t kMaxVocab = 1 << 24;

// Two ids as one number: sorted by the left one, then by the right one.
// How often a pair occurs, and where it may: places are added when it arises and checked when it is merged.
struct Occurrences {
  int64_t count = 0;
  std::vector<int32_t> places;
};

struct Candidate {
  int64_t count;
  TokenPair pair;
  bool operator<(const Candidate& other) const { return count != other.count ? count < other.count : pair > other.pair; }
};

// All different words as one list of symbols, and its pairs. A merge touches only the places where its pair occurs.
class Merger {
 public:
  void add_word(std::string_view word, int64_t count, const std::vector<int32_t>& byte_ids) {
    ONESTEP_CHECK(ConfigError, symbols_.size() + word.size() < std::numeric_limits<int32_t>::max(),
                  "tokenizer train: the text has too many different words: more than 2 GiB of them");
    const auto begin = static_cast<int32_t>(symbols_.size()), end = begin + static_cast<int32_t>(word.size());
    for (int32_t at = begin; at < end; ++at) {
      const auto byte = static_cast<unsigned char>(word[static_cast<size_t>(at - begin)]);
      symbols_.push_back({byte_ids[byte], at > begin ? at - 1 : -1, at + 1 < end ? at + 1 : -1, word_number_});
    }
    counts_.push_back(count);
    ++word_number_;
    for (int32_t at = begin; at + 1 < end; ++at) change(at, count);
  }

  void fill_heap() {
    for (const auto& [pair, occurrences] : pairs_) heap_.push({occurrences.count, pair});
  }

  // Takes the next pair to merge off the heap; false if none occurs twice.
  bool next(TokenPair& pair) {
    while (!heap_.empty()) {
      const Candidate top = heap_.top();
      heap_.pop();
      const int64_t count = pairs_[top.pair].count;
      if (count == top.count && count >= 2) return pair = top.pair, true;
      if (count >= 2 && count < top.count) heap_.push({count, top.pair});  // it has lost places since
    }
    return false;
  }

  void merge(TokenPair pair, int32_t result) {
    const auto left = static_cast<int32_t>(pair >> 32), right = static_cast<int32_t>(pair & 0xffffffffu);
    std::vector<int32_t> places = std::move(pairs_[pair].places);
    std::sort(places.begin(), places.end());  // "aaa" is "aa" and "a"
    grown_.clear();
    for (const int32_t at : places) {
      Symbol& first = symbol(at);
      if (first.id != left || first.next < 0 || symbol(first.next).id != right) continue;
      Symbol& second = symbol(first.next);
      const int64_t count = counts_[static_cast<size_t>(first.word)];
      if (first.previous >= 0) change(first.previous, -count);
      if (second.next >= 0) change(first.next, -count);
      first.id = result;
      first.next = second.next;
      second.id = -1;
      if (first.next >= 0) symbol(first.next).previous = at;
      for (const int32_t place : {first.previous, at}) {
        if (place < 0 || symbol(place).next < 0) continue;
        change(place, count);
        grown_.push_back(pair_at(place));
      }
    }
    pairs_.erase(pair);
    std::sort(grown_.begin(), grown_.end());
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const TokenPair other : grown_) heap_.push({pairs_[other].count, other});
  }

 private:
  struct Symbol {
    int32_t id, previous, next, word;  // id -1 where a symbol went into the one before
  };

  Symbol& symbol(int32_t at) { return symbols_[static_cast<size_t>(at)]; }

  TokenPair pair_at(int32_t at) { return token_pair(symbol(at).id, symbol(symbol(at).next).id); }

  // The pair at `at` comes (count > 0) or goes.
  void change(int32_t at, int64_t count) {
    Occurrences& occurrences = pairs_[pair_at(at)];
    occurrences.count += count;
    if (count > 0) occurrences.places.push_back(at);
  }

  std::vector<Symbol> symbols_;
  std::vector<int64_t> counts_;  // of the words
  int32_t word_number_ = 0;
  std::unordered_map<TokenPair, Occurrences, TokenPairHash> pairs_;
  std::priority_queue<Candidate> heap_;
  std::vector<TokenPair> grown_;  // pairs that came into being in this merge
};

}  // namespace

BpeTrainer::BpeTrainer(std::vector<std::string> specials) : specials_(std::move(specials)) {}

size_t BpeTrainer::add(const TextPart& part) {
  return for_each_word(part, specials_, [&](std::string_view word, int special) {
    if (special >= 0) return;
    const auto found = words_.find(word);
    if (found != words_.end()) {
      ++found->second;
    } else {
      words_.emplace(word, 1);
    }
  });
}

BpeVocabulary BpeTrainer::train(int64_t vocab_size, const std::function<void(int64_t)>& show) const {
  const auto fixed = static_cast<int64_t>(256 + specials_.size());
  ONESTEP_CHECK(ConfigError, vocab_size >= fixed && vocab_size <= kMaxVocab, "tokenizer train: vocab-size must be from ", fixed,
                " (the bytes and ", specials_.size(), " special token) to ", kMaxVocab, ": got ", vocab_size);
  BpeVocabulary out = bpe_bytes();
  std::vector<int32_t> byte_ids(256);
  for (size_t id = 0; id < 256; ++id) byte_ids[static_cast<unsigned char>(out.tokens[id][0])] = static_cast<int32_t>(id);
  Merger merger;
  for (const auto& [word, count] : words_) merger.add_word(word, count, byte_ids);
  merger.fill_heap();

  const size_t merged_size = static_cast<size_t>(vocab_size) - specials_.size();
  std::unordered_set<std::string> known(out.tokens.begin(), out.tokens.end());
  TokenPair pair = 0;
  while (out.tokens.size() < merged_size && merger.next(pair)) {
    const auto left = static_cast<int32_t>(pair >> 32), right = static_cast<int32_t>(pair & 0xffffffffu);
    const std::string token = out.tokens[static_cast<size_t>(left)] + out.tokens[static_cast<size_t>(right)];
    if (!known.insert(token).second) continue;
    const auto result = static_cast<int32_t>(out.tokens.size());
    out.tokens.push_back(token);
    out.merges.push_back({left, right, result});
    merger.merge(pair, result);
    if (show) show(static_cast<int64_t>(out.merges.size()));
  }
  for (const std::string& special : specials_) {
    out.specials.push_back(static_cast<int32_t>(out.tokens.size()));
    out.tokens.push_back(special);
  }
  return out;
}

}  // namespace onestep::train
