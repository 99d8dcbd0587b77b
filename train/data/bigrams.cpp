#include "train/data/bigrams.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

namespace onestep::train {
namespace {

/// Calls use(token, next) for the neighbours among the tokens begin .. end - 1.
template <class Use>
void for_each_pair(const Tokens& tokens, int64_t begin, int64_t end, const Use& use) {
  constexpr int64_t kBlock = 1 << 16;
  std::vector<int64_t> ids;
  for (; begin + 1 < end; begin += kBlock) {
    ids.clear();
    tokens.read(begin, std::min(kBlock + 1, end - begin), ids);  // the last one is the next block's first
    for (size_t i = 0; i + 1 < ids.size(); ++i) use(ids[i], ids[i + 1]);
  }
}

/// How often a token came, and how many different ones did.
struct Counts {
  double all = 0, kinds = 0;
};

class BigramTable {
 public:
  explicit BigramTable(int64_t vocab_size) : vocab_size_(static_cast<double>(vocab_size)) {}

  void add(int64_t token, int64_t next) {
    Counts& after = after_[token];
    after.kinds += ++pairs_[key(token, next)] == 1;
    ++after.all;
    any_.kinds += ++nexts_[next] == 1;
    ++any_.all;
  }

  /// p(next | token) as counted.
  double counted(int64_t token, int64_t next) const { return count(pairs_, key(token, next)) / after_.at(token).all; }

  /// The same with a share for what has not been seen after this token, by how often it came after any, and for what has not
  /// been seen at all.
  double smoothed(int64_t token, int64_t next) const {
    const double anywhere = share(count(nexts_, next), any_, 1 / vocab_size_);
    const auto after = after_.find(token);
    return after == after_.end() ? anywhere : share(count(pairs_, key(token, next)), after->second, anywhere);
  }

 private:
  template <class Key>
  using Map = std::unordered_map<Key, int64_t>;

  static uint64_t key(int64_t token, int64_t next) { return static_cast<uint64_t>(token) << 32 | static_cast<uint64_t>(next); }
  template <class Key>
  static double count(const Map<Key>& counts, Key of) {
    const auto found = counts.find(of);
    return found == counts.end() ? 0 : static_cast<double>(found->second);
  }
  /// Witten-Bell: a new kind of token is expected as often as new kinds have come so far.
  static double share(double count, const Counts& seen, double otherwise) {
    return (count + seen.kinds * otherwise) / (seen.all + seen.kinds);
  }

  double vocab_size_;
  Map<uint64_t> pairs_;
  Map<int64_t> nexts_;
  std::unordered_map<int64_t, Counts> after_;
  Counts any_;
};

}  // namespace

double bigram_loss(const Tokens& tokens, int64_t train_count, int64_t vocab_size, int64_t ignore_index) {
  BigramTable table(vocab_size);
  for_each_pair(tokens, 0, train_count, [&](int64_t token, int64_t next) {
    if (next != ignore_index) table.add(token, next);
  });
  const bool held_out = train_count < tokens.size();
  double loss = 0, count = 0;
  for_each_pair(tokens, held_out ? train_count : 0, tokens.size(), [&](int64_t token, int64_t next) {
    if (next == ignore_index) return;
    loss -= std::log(held_out ? table.smoothed(token, next) : table.counted(token, next));
    ++count;
  });
  return count == 0 ? 0.0 : loss / count;
}

}  // namespace onestep::train
