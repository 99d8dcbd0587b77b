#include "train/samples.h"

#include <algorithm>
#include <utility>

#include "nn/module.h"
#include "train/models/generate.h"
#include "train/text/stream_decoder.h"

namespace onestep::train {

constexpr int64_t kTokens = 100;

namespace {

/// What is given of the first row of evaluation data, and how many tokens follow: the prompt and its answer where there are
/// such.
struct Parts {
  int64_t given, tokens;
};

Parts parts_of(const Batch& batch) {
  const auto counts = [](int64_t target) { return target != kIgnoreIndex; };
  const auto first = std::find_if(batch.targets.begin(), batch.targets.end(), counts);
  const int64_t given = first - batch.targets.begin() + 1;
  if (given > 1) return {given, std::find_if_not(first, batch.targets.end(), counts) - first};
  return {std::clamp<int64_t>(batch.length / 2, 1, 16), kTokens};
}

/// A text, and the label that a classifier gives it.
Sample labelled(Trainer& trainer, const Batch& batch) {
  const NoGradGuard no_grad;
  const Data& data = trainer.data();
  const auto last = std::find_if(batch.targets.begin(), batch.targets.end(), [](int64_t t) { return t != kIgnoreIndex; });
  const auto at = static_cast<size_t>(last - batch.targets.begin());
  const std::vector<int64_t> predicted = argmax(forward_batch(trainer.model(), batch), -1).to_vector<int64_t>();
  TokenText text(data.tokenizer());
  Sample sample;
  for (size_t i = 0; i <= at; ++i) sample.prompt += text.add(batch.inputs[i]);
  sample.prompt += text.finish();
  const std::string &given = data.labels()[static_cast<size_t>(predicted[at])],
                    &right = data.labels()[static_cast<size_t>(*last)];
  sample.continuation = " -> ";
  sample.continuation += given;
  if (given != right) sample.continuation.append(" (").append(right).append(")");
  return sample;
}

}  // namespace

std::vector<Sample> write_samples(Trainer& trainer, int64_t count) {
  const Data& data = trainer.data();
  Generator generator = trainer.evaluation_generator();
  const nn::EvaluationMode mode(trainer.model());
  std::vector<Sample> samples;
  for (int64_t i = 0; i < count; ++i) {
    const Batch batch = data.eval_batch(1, generator);
    if (!data.labels().empty()) {
      samples.push_back(labelled(trainer, batch));
      continue;
    }
    const auto [given, tokens] = parts_of(batch);
    const std::vector<int64_t> ids(batch.inputs.begin(), batch.inputs.begin() + static_cast<std::ptrdiff_t>(given));
    TokenText text(data.tokenizer());
    Sample sample;
    const auto piece = [&](int64_t id) { return data.tokenizer() != nullptr ? text.add(id) : data.token_name(id) + ' '; };
    for (const int64_t id : ids) sample.prompt += piece(id);
    const Generated made = generate(trainer.model(), ids, {.tokens = tokens}, generator);
    for (const int64_t id : made.ids) sample.continuation += piece(id);
    sample.continuation += text.finish();
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace onestep::train
