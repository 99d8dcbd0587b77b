#pragma once
// What a model writes: continuations of its validation data, to be looked at.
#include <string>
#include <vector>

#include "train/trainer.h"

namespace onestep::train {

/// A beginning from the validation data, of a task the whole prompt, and what the model made of it; ids where there is no
/// tokenizer.
struct Sample {
  std::string prompt, continuation;
  std::vector<int64_t> ids = {};         ///< Of both,
  int64_t given = 0;                     ///< of which so many are the prompt's.
  std::vector<std::string> pieces = {};  ///< What the text grows by with each id.
};

/// `count` continuations (of a classifier texts with their labels) of up to 100 tokens, or answers, drawn at temperature 1 from
/// a generator of their own: the run does not notice, and the same parameters write the same. Texts are valid UTF-8. Throws
/// DivergedError if logits are not finite.
std::vector<Sample> write_samples(Trainer& trainer, int64_t count);

}  // namespace onestep::train
