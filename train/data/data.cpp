#include "train/data/data.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/creation.h"
#include "autograd/ops_math.h"
#include "autograd/random/random_fill.h"
#include "base/error.h"
#include "base/utf8.h"
#include "train/data/bigrams.h"
#include "train/data/classification.h"
#include "train/data/instructions.h"
#include "train/data/task.h"
#include "train/data/text_source.h"
#include "train/data/token_cache.h"
#include "train/text/bpe_tokenizer.h"

namespace onestep::train {
namespace {

// A stream of tokens cut into windows: kinds `tokens` and `text`.
class TokenData : public Data {
 public:
  TokenData(const Config& config, std::shared_ptr<const Tokens> tokens, int64_t vocab_size,
            std::shared_ptr<const Tokenizer> tokenizer)
      : tokens_(std::move(tokens)),
        vocab_size_(vocab_size),
        length_(config.model.context_length),
        window_starts_(config.data.window_starts),
        ignore_index_(config.data.ignore_index),
        tokenizer_(std::move(tokenizer)) {
    train_count_ = training_tokens(count(), config.data.val_fraction);
    const std::string where = config.data.kind == DataKind::text ? "/data" : "/data/tokens";
    ONESTEP_CHECK(ConfigError, train_count_ > length_, config.origin.at(where), ": too few tokens to train on: ", train_count_,
                  " of ", count(), ", one window takes context_length + 1 = ", length_ + 1,
                  " (a longer text, or a smaller model.context_length)");
    const int64_t rest = count() - train_count_;
    ONESTEP_CHECK(ConfigError, config.data.val_fraction == 0 || rest > length_, config.origin.at("/data/val_fraction"),
                  ": leaves too few tokens for validation: ", rest, ", one window takes context_length + 1 = ", length_ + 1,
                  " (0 evaluates on the training data)");
    evaluates_on_training_ = config.data.val_fraction == 0;
    if (ignore_index_ != kIgnoreIndex) check_targets(config.origin.at("/data/ignore_index"));
  }

  int64_t vocab_size() const override { return vocab_size_; }
  int64_t length() const override { return length_; }

  Batch train_batch(int64_t batch_size, Generator& g) const override {
    return window_starts_.empty() ? random_windows(0, train_count_, batch_size, g) : windows(window_starts_);
  }

  // Without a target that counts there is no mean loss: such windows are drawn again. Some have one (check_targets).
  Batch eval_batch(int64_t batch_size, Generator& g) const override {
    Batch batch;
    do batch = evaluates_on_training_ ? train_batch(batch_size, g) : random_windows(train_count_, count(), batch_size, g);
    while (batch.counted() == 0);
    return batch;
  }

  std::string hash() const override { return tokens_->hash(); }

  std::string describe() const override {
    std::string out = std::to_string(count()) + " tokens";
    if (tokenizer_) out += " (" + std::string(name_of(tokenizer_->kind())) + ")";
    if (!evaluates_on_training_) out += ", " + std::to_string(train_count_) + " of them to train on";
    return out + ", vocabulary " + std::to_string(vocab_size_);
  }

  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  std::optional<double> bigram_loss() const override {
    constexpr int64_t kMostCounted = 1 << 22;  // counting more takes time and memory that grow with the text
    if (count() > kMostCounted) return std::nullopt;
    return train::bigram_loss(*tokens_, train_count_, vocab_size_, ignore_index_);
  }

 private:
  int64_t count() const { return tokens_->size(); }

  // Whether one of the tokens begin .. end - 1 counts as a target.
  bool any_counts(int64_t begin, int64_t end) const {
    std::vector<int64_t> ids;
    tokens_->read(begin, end - begin, ids);
    return std::any_of(ids.begin(), ids.end(), [this](int64_t id) { return id != ignore_index_; });
  }

  void check_targets(const std::string& place) const {
    const bool trains = window_starts_.empty() ? any_counts(1, train_count_) : windows(window_starts_).counted() > 0;
    ONESTEP_CHECK(ConfigError, trains, place, ": must leave a target to train on: all of them are ", ignore_index_);
    ONESTEP_CHECK(ConfigError, evaluates_on_training_ || any_counts(train_count_ + 1, count()), place,
                  ": must leave a target among the held-out tokens: all of them are ", ignore_index_,
                  " (data.val_fraction = 0 evaluates on the training data)");
  }

  // Windows of tokens begin .. end - 1, as nanoGPT draws them: begin + randint(end - begin - length).
  Batch random_windows(int64_t begin, int64_t end, int64_t batch_size, Generator& g) const {
    std::vector<int64_t> starts(static_cast<size_t>(batch_size));
    fill_randint(starts, begin, end - length_, g);
    return windows(starts);
  }

  Batch windows(const std::vector<int64_t>& starts) const {
    Batch batch{{}, {}, static_cast<int64_t>(starts.size()), length_};
    std::vector<int64_t> window;
    for (const int64_t start : starts) {
      window.clear();
      tokens_->read(start, length_ + 1, window);
      batch.inputs.insert(batch.inputs.end(), window.begin(), window.end() - 1);
      batch.targets.insert(batch.targets.end(), window.begin() + 1, window.end());
    }
    std::replace(batch.targets.begin(), batch.targets.end(), ignore_index_, kIgnoreIndex);
    return batch;
  }

  std::shared_ptr<const Tokens> tokens_;
  int64_t vocab_size_, length_, train_count_;
  bool evaluates_on_training_;
  std::vector<int64_t> window_starts_;
  int64_t ignore_index_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

// Kind `none`: only the vocabulary of the model.
class NoData : public Data {
 public:
  explicit NoData(const Config& config)
      : vocab_size_(config.model.vocab_size), length_(config.model.context_length), place_(config.origin.at("/data/kind")) {}

  int64_t vocab_size() const override { return vocab_size_; }
  int64_t length() const override { return length_; }
  Batch train_batch(int64_t, Generator&) const override { refuse(); }
  Batch eval_batch(int64_t, Generator&) const override { refuse(); }
  std::string describe() const override { return "no data"; }

 private:
  [[noreturn]] void refuse() const {
    fail<ConfigError>(place_,
                      ": none: there is nothing to train or evaluate on (give --set data.kind=text --set data.path=FILE)");
  }

  int64_t vocab_size_, length_;
  std::string place_;
};

/// The tokenizer of data.tokenizer_path for kind bpe, else null: one is made of the text.
std::shared_ptr<const Tokenizer> open_data_tokenizer(const Config& config) {
  const DataConfig& data = config.data;
  if (!reads_text(data.kind) || data.tokenizer != TokenizerKind::bpe) return nullptr;
  std::shared_ptr<const Tokenizer> tokenizer = open_tokenizer(data.tokenizer_path);
  ONESTEP_CHECK(ConfigError, tokenizer->kind() == TokenizerKind::bpe, config.origin.at("/data/tokenizer_path"),
                ": must have a tokenizer of kind bpe: ", data.tokenizer_path, " has one of kind ", name_of(tokenizer->kind()));
  return tokenizer;
}

std::unique_ptr<Data> make_text_data(const Config& config, std::shared_ptr<const Tokenizer> tokenizer, bool quiet) {
  const DataConfig& data = config.data;
  const std::vector<std::string> files = data.text.empty() ? text_files(config) : std::vector<std::string>{};
  std::shared_ptr<const Tokens> tokens;
  try {
    if (!files.empty()) {
      TokenisedText text = tokenise_files(files, data.tokenizer, tokenizer, quiet);
      tokens = text.tokens;
      tokenizer = text.tokenizer;
    } else {
      if (!tokenizer) tokenizer = make_tokenizer(data.tokenizer, data.text);
      tokens = std::make_shared<TokenList>(tokenizer->encode(data.text));
    }
  } catch (const ConfigError& error) {
    fail<ConfigError>(config.origin.at("/data"), ": ", error.what());
  }
  return std::make_unique<TokenData>(config, tokens, tokenizer->vocab_size(), tokenizer);
}

}  // namespace

Tensor Batch::input() const { return from_values(inputs, {batch, length}); }
Tensor Batch::target() const { return from_values(targets, {batch * length}); }

std::unique_ptr<Data> make_data(const Config& given, std::shared_ptr<const Tokenizer> tokenizer, bool quiet) {
  const Config config = resolve(given);
  const DataConfig& data = config.data;
  if (data.kind == DataKind::none) return std::make_unique<NoData>(config);
  if (data.kind == DataKind::task) return std::make_unique<TaskData>(config);
  if (!tokenizer) tokenizer = open_data_tokenizer(config);
  if (data.kind == DataKind::text) return make_text_data(config, std::move(tokenizer), quiet);
  if (data.kind == DataKind::classification) return make_classification_data(config, std::move(tokenizer), quiet);
  if (data.kind == DataKind::instructions) return make_instruction_data(config, std::move(tokenizer), quiet);
  return std::make_unique<TokenData>(config, std::make_shared<TokenList>(data.tokens), data.vocab_size, nullptr);
}

const std::vector<std::string>& Data::labels() const {
  static const std::vector<std::string> none;
  return none;
}

std::string Data::token_name(int64_t id) const {
  return tokenizer() != nullptr ? printable(tokenizer()->decode(std::vector{id})) : std::to_string(id);
}

std::string evaluates_on(const DataConfig& data) {
  if (data.kind == DataKind::none) return "nothing";
  if (data.kind == DataKind::task) return "held-out sequences";
  if (has_examples(data.kind))
    return std::string(data.val_fraction == 0 && data.val_path.empty() ? "training " : "validation ") +
           (data.kind == DataKind::instructions ? "answers" : "texts");
  return data.val_fraction == 0 ? "training tokens" : "validation tokens";
}

}  // namespace onestep::train
