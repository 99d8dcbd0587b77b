#pragma once
// Data of separate examples: what fine-tuning reads.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "train/data/data.h"

namespace onestep::train {

/// A sequence and, for each of its tokens, the target or kIgnoreIndex.
struct Example {
  std::vector<int64_t> inputs, targets;
  std::string key = {};  ///< Of its text: which examples are held out depends on nothing else.
};

/// The examples of a run.
struct ExampleSet {
  std::vector<Example> train, held_out;  ///< The latter empty: the former are evaluated.
};

/// Keeps max(1, val_fraction n) of the examples from training, those whose keys have the lowest hashes: the same for every seed
/// and order, with equal ones side by side. None with val_fraction 0. Throws ConfigError where none are left.
ExampleSet hold_out(std::vector<Example> examples, const Config& config);

/// Examples in rows of up to model.context_length tokens. With `packed`, as many as fit are put one after the other in a row,
/// kept apart by Batch::sequences; else each has a row, which is padded on the right. A batch is as long as its longest row.
class ExampleData : public Data {
 public:
  /// `most_targets` of an example or, where they are packed, of a row count.
  ExampleData(const Config& config, ExampleSet examples, std::shared_ptr<const Tokenizer> tokenizer, bool packed,
              int64_t most_targets);

  int64_t vocab_size() const override { return tokenizer_->vocab_size(); }
  /// Of the longest row.
  int64_t length() const override { return longest_; }
  int64_t targets() const override { return most_targets_; }
  bool varies() const override { return true; }
  /// Rows drawn with randint.
  Batch train_batch(int64_t batch_size, Generator& g) const override { return random_rows(train_rows_, batch_size, g); }
  Batch eval_batch(int64_t batch_size, Generator& g) const override { return random_rows(evaluated_rows(), batch_size, g); }
  /// Every held-out row once, in their order.
  int64_t eval_batches(int64_t batch_size, int64_t most) const override;
  Batch eval_batch_at(int64_t i, int64_t batch_size, Generator& g) const override;
  std::string hash() const override;
  std::string describe() const override;
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }

 private:
  using Row = std::vector<const Example*>;
  std::vector<Row> make_rows(const std::vector<Example>& examples, bool packed) const;
  const std::vector<Row>& evaluated_rows() const { return held_out_rows_.empty() ? train_rows_ : held_out_rows_; }
  Batch random_rows(const std::vector<Row>& rows, int64_t batch_size, Generator& g) const;
  Batch batch_of(const std::vector<const Row*>& rows) const;

  ExampleSet examples_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool packed_;
  int64_t length_, most_targets_;
  std::vector<Row> train_rows_, held_out_rows_;
  int64_t longest_ = 0;
};

/// Cuts an example to its first `longest` tokens; whether it had more.
bool cut_to(Example& example, int64_t longest);

/// How many examples did not fit into the context: said once, on stderr, unless `quiet`.
struct CutExamples {
  int64_t cut = 0, left_out = 0, all = 0;
  void say(const std::string& what, int64_t context_length, bool quiet) const;
};

}  // namespace onestep::train
