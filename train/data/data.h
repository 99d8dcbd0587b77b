#pragma once
// Batches of token ids: from a list, from text, or generated for a task (task.h).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/random/generator.h"
#include "autograd/tensor.h"
#include "train/config/config.h"
#include "train/data/token_file.h"
#include "train/text/tokenizer.h"

namespace onestep::train {

/// The target that counts in neither loss nor accuracy (cross_entropy's ignore_index).
inline constexpr int64_t kIgnoreIndex = -100;

/// Token ids and, for each, the one that follows: both [batch, length], row by row.
struct Batch {
  std::vector<int64_t> inputs, targets;
  int64_t batch = 0, length = 0;
  /// Tokens of each of the sequences that lie one after the other in the rows and do not see each other; empty: a row is one.
  std::vector<int64_t> sequences = {};

  /// As tensors: [batch, length], and [batch * length] for cross_entropy.
  Tensor input() const;
  Tensor target() const;
  /// Targets that count.
  int64_t counted() const {
    return static_cast<int64_t>(targets.size()) - std::count(targets.begin(), targets.end(), kIgnoreIndex);
  }
};

/// Where a run's batches come from. Every draw is from the generator that is passed in: training uses the run's, evaluation one
/// of its own, so that looking at a run never changes it.
class Data {
 public:
  virtual ~Data() = default;

  virtual int64_t vocab_size() const = 0;
  /// Tokens a row of every batch, at most model.context_length.
  virtual int64_t length() const = 0;
  /// Targets a row that count, at most.
  virtual int64_t targets() const { return length(); }
  /// One micro-batch to train on.
  virtual Batch train_batch(int64_t batch_size, Generator& g) const = 0;
  /// One batch of what training never sees; of the training data if nothing was kept from it (evaluates_on).
  virtual Batch eval_batch(int64_t batch_size, Generator& g) const = 0;
  /// Batches of an evaluation, of `most` that are asked for: fewer where they would hold every example once.
  virtual int64_t eval_batches(int64_t /*batch_size*/, int64_t most) const { return most; }
  /// Batch `i` of an evaluation, which draws from `g` or has its place among the examples.
  virtual Batch eval_batch_at(int64_t /*i*/, int64_t batch_size, Generator& g) const { return eval_batch(batch_size, g); }
  /// What the targets stand for where the model tells classes of texts; else none.
  virtual const std::vector<std::string>& labels() const;
  /// Whether batches are of different lengths, and dropout therefore of different numbers of draws.
  virtual bool varies() const { return false; }
  /// Writes into a config what it left to the data.
  virtual void complete(DataConfig& /*data*/) const {}
  /// XXH3-128 of the tokens: a run continues with the data it was started with. Empty for data that is generated.
  virtual std::string hash() const { return {}; }
  /// One line for people: how much there is of it.
  virtual std::string describe() const = 0;
  /// The tokenizer of a text, else nullptr.
  virtual const Tokenizer* tokenizer() const { return nullptr; }
  /// One token as people read it: its text, else its id; what cannot be seen is escaped.
  virtual std::string token_name(int64_t id) const;
  /// Loss of a table of token pairs on what eval_batch draws from (bigrams.h); none for a task or for more than 4 M tokens.
  virtual std::optional<double> bigram_loss() const { return std::nullopt; }
};

/// Makes what config.data describes. Text is encoded by `tokenizer` (a run's own) or, without one, by a new one from its
/// symbols. Throws IoError for a file that cannot be read and ConfigError for data that does not fit the rest of the config.
/// Text files are tokenised once (token_cache.h), with progress on stderr unless `quiet`.
std::unique_ptr<Data> make_data(const Config& config, std::shared_ptr<const Tokenizer> tokenizer = nullptr, bool quiet = true);

/// What eval_batch draws from, in words: `validation tokens`, `held-out sequences`, `training tokens`, `nothing`.
std::string evaluates_on(const DataConfig& data);

}  // namespace onestep::train
