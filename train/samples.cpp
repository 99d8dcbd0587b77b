#include "train/samples.h"

#include <algorithm>
#include <utility>

#include "train/generate.h"
#include "train/token_text.h"

namespace onestep::train {

constexpr int64_t kTokens = 100;

std::vector<Sample> write_samples(Trainer& trainer, int64_t count) {
  const Data& data = trainer.data();
  Generator generator = trainer.evaluation_generator();
  const EvaluationMode mode(trainer.model());
  std::vector<Sample> samples;
  for (int64_t i = 0; i < count; ++i) {
    const Batch batch = data.eval_batch(1, generator);
    const auto given = static_cast<std::ptrdiff_t>(std::clamp<int64_t>(batch.length / 2, 1, 16));
    const std::vector<int64_t> ids(batch.inputs.begin(), batch.inputs.begin() + given);
    TokenText text(data.tokenizer());
    Sample sample;
    for (const int64_t id : ids) sample.prompt += text.add(id);
    const Generated made = generate(trainer.model(), ids, {.tokens = kTokens}, generator);
    for (const int64_t id : made.ids) sample.continuation += text.add(id);
    sample.continuation += text.finish();
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace onestep::train
