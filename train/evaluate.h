#pragma once
// Loss and accuracy of a model on what it was not trained on.
#include <functional>
#include <numbers>
#include <vector>

#include "autograd/ops_loss.h"
#include "autograd/random/generator.h"
#include "autograd/tensor.h"
#include "train/data/data.h"
#include "train/distributed/communicator.h"
#include "train/models/language_model.h"

namespace onestep::train {

struct Evaluation {
  double loss = 0;                    ///< Mean cross entropy in nats a scored token.
  double accuracy = 0;                ///< Share of scored tokens whose most likely prediction is right.
  int64_t tokens = 0;                 ///< Scored tokens.
  int64_t bytes = 0, characters = 0;  ///< Of the text that the scored tokens stand for; 0 where there is no tokenizer.

  std::vector<int64_t> confusion = {};  ///< Of C classes [C, C]: texts of class i that were taken for class j; else empty.

  /// Mean over the classes that there are or that were predicted of F1 = 2 hits / (2 hits + misses + false alarms)
  /// (sklearn.metrics.f1_score, average "macro").
  double macro_f1() const;
  /// log2 e sum of the losses / characters: comparable between tokenizers, as the loss is not.
  double bits_per_character() const { return bits_per(characters); }
  double bits_per_byte() const { return bits_per(bytes); }

 private:
  double bits_per(int64_t units) const {
    return loss * std::numbers::log2e * static_cast<double>(tokens) / static_cast<double>(units);
  }
};

/// Says whether to stop what takes long.
using Stopped = std::function<bool()>;

/// The logits of a batch: those of its sequences, each alone.
Tensor forward_batch(const LanguageModel& model, const Batch& batch);

/// Cross entropy of logits over the targets that count: [B, T, V] -> [], with Reduction::none [B T]. As cross_entropy it takes
/// the memory of logits whose last handle is given.
Tensor batch_loss(Tensor logits, const Batch& batch, Reduction reduction);

/// Loss and accuracy of `model` over held-out batches drawn from `generator`, without dropout and without recording. Throws
/// InterruptedError when `stopped` says so between two batches. Ranks share the batches; the sums do not depend on their
/// number.
Evaluation evaluate(LanguageModel& model, const Data& data, int64_t batches, int64_t batch_size, Generator generator,
                    const Stopped& stopped = {}, Communicator* ranks = nullptr);

/// Loss and accuracy of `model` on every token but the first of a text, in windows of its context length one after the other,
/// so that a token attends only to those before it in its window. Throws ConfigError for a text of fewer than two tokens.
Evaluation evaluate_all(LanguageModel& model, const Tokens& tokens, const Tokenizer& tokenizer, int64_t batch_size,
                        const std::function<void(int64_t)>& show = {});

}  // namespace onestep::train
