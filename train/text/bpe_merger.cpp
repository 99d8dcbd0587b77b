#include "train/text/bpe_merger.h"

#include <queue>

namespace onestep::train {
namespace {

constexpr size_t kCachedWords = 1 << 16, kCachedLength = 48;

/// A pair that may be merged: the lowest rank first, then the leftmost.
struct Candidate {
  int32_t rank, at;
  bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

}  // namespace

void BpeMerger::add(int32_t left, int32_t right, int32_t result) {
  rules_.emplace(token_pair(left, right), Rule{static_cast<int32_t>(rules_.size()), result});
}

void BpeMerger::encode(std::string_view word, std::vector<int64_t>& ids) const {
  if (word.size() > kCachedLength) return merge(word, ids);
  auto found = cache_.find(word);
  if (found == cache_.end()) {
    if (cache_.size() >= kCachedWords) cache_.clear();
    std::vector<int64_t> made;
    merge(word, made);
    found = cache_.emplace(word, std::move(made)).first;
  }
  ids.insert(ids.end(), found->second.begin(), found->second.end());
}

// A heap of the pairs that have a rule: n log n for a word of n bytes.
void BpeMerger::merge(std::string_view word, std::vector<int64_t>& ids) const {
  struct Symbol {
    int32_t id, previous, next;  // a list; id -1 where a symbol went into the one before
  };
  std::vector<int32_t> first;
  symbols_(word, first);
  const auto size = static_cast<int32_t>(first.size());
  std::vector<Symbol> symbols(first.size());
  for (int32_t i = 0; i < size; ++i)
    symbols[static_cast<size_t>(i)] = {first[static_cast<size_t>(i)], i - 1, i + 1 < size ? i + 1 : -1};
  const auto symbol = [&](int32_t at) -> Symbol& { return symbols[static_cast<size_t>(at)]; };
  const auto rule_at = [&](int32_t at) -> const Rule* {
    if (at < 0 || symbol(at).id < 0 || symbol(at).next < 0) return nullptr;
    const auto found = rules_.find(token_pair(symbol(at).id, symbol(symbol(at).next).id));
    return found == rules_.end() ? nullptr : &found->second;
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto push = [&](int32_t at) {
    if (const Rule* found = rule_at(at)) heap.push({found->rank, at});
  };
  for (int32_t i = 0; i + 1 < size; ++i) push(i);

  std::vector<int32_t> changed;
  while (!heap.empty()) {
    const Candidate next = heap.top();
    heap.pop();
    const Rule* found = rule_at(next.at);
    if (found != nullptr && found->rank == next.rank) {  // else a neighbour was merged away meanwhile
      Symbol& left = symbol(next.at);
      Symbol& right = symbol(left.next);
      left.id = found->result;
      left.next = right.next;
      right.id = -1;
      if (left.next >= 0) symbol(left.next).previous = next.at;
      changed.insert(changed.end(), {left.previous, next.at});
    }
    // Rank by rank, the new pairs come after all of this rank, whatever their own.
    if (order_ == Order::rank_by_rank && !heap.empty() && heap.top().rank == next.rank) continue;
    for (const int32_t at : changed) push(at);
    changed.clear();
  }
  for (int32_t at = size > 0 ? 0 : -1; at >= 0; at = symbol(at).next) ids.push_back(symbol(at).id);
}

}  // namespace onestep::train
