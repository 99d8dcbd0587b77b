#pragma once
// Tasks: sequences with an answer, generated without end from a generator.
#include "train/data/data.h"

namespace onestep::train {

/// The names of a task's symbols, as words between spaces: letters, or numbers with leading zeros where there are more than 52
/// or they are added, and `=`. Null for more than 65,537 symbols, which are ids alone.
std::shared_ptr<const Tokenizer> task_tokenizer(const DataConfig& data);

/// A sequence is a prompt and its answer; targets before the answer are kIgnoreIndex.
///   copy, reverse, sort   prompt: `length` random symbols; answer: the same in that order
///   modular_addition      prompt: a, b, = (the id `modulus`); answer: a + b mod modulus
/// A prompt is held out if a fixed hash of it falls into the lowest val_fraction of its range: the same prompts for every seed,
/// and no generator can bring one into training.
class TaskData : public Data {
 public:
  /// Throws ConfigError if there are so few prompts that all or none are held out.
  explicit TaskData(const Config& config);

  int64_t vocab_size() const override;
  int64_t length() const override { return prompt_size() + answer_size() - 1; }
  int64_t targets() const override { return answer_size(); }
  Batch train_batch(int64_t batch_size, Generator& g) const override { return batch(batch_size, false, g); }
  Batch eval_batch(int64_t batch_size, Generator& g) const override { return batch(batch_size, true, g); }
  std::string describe() const override;
  std::string token_name(int64_t id) const override;

 private:
  bool adds() const { return data_.task == Task::modular_addition; }
  int64_t random_size() const { return adds() ? 2 : data_.length; }              // symbols drawn
  int64_t symbols() const { return adds() ? data_.modulus : data_.vocab_size; }  // that they are drawn from
  int64_t prompt_size() const { return adds() ? 3 : data_.length; }
  int64_t answer_size() const { return adds() ? 1 : data_.length; }

  bool is_held_out(std::span<const int64_t> drawn) const;
  void check_both_kinds_exist(const Config& config) const;
  std::vector<int64_t> sequence(std::vector<int64_t> drawn) const;
  Batch batch(int64_t batch_size, bool held_out, Generator& g) const;

  DataConfig data_;
  std::shared_ptr<const Tokenizer> names_;
};

}  // namespace onestep::train
