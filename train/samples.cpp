#include "train/samples.h"

#include <algorithm>
#include <utility>

#include "nn/module.h"
#include "train/models/generate.h"
#include "train/text/stream_decoder.h"

namespace onestep::train {

constexpr int64_t kTokens = 100;

namespace {

/// What is given of a row of evaluation data, and how many tokens follow: of a task the prompt and its answer.
struct Parts {
  int64_t given, tokens;
};

Parts parts_of(const Data& data) {
  if (data.targets() < data.length()) return {data.length() - data.targets() + 1, data.targets()};
  return {std::clamp<int64_t>(data.length() / 2, 1, 16), kTokens};
}

}  // namespace

std::vector<Sample> write_samples(Trainer& trainer, int64_t count) {
  const Data& data = trainer.data();
  Generator generator = trainer.evaluation_generator();
  const nn::EvaluationMode mode(trainer.model());
  const auto [given, tokens] = parts_of(data);
  std::vector<Sample> samples;
  for (int64_t i = 0; i < count; ++i) {
    const Batch batch = data.eval_batch(1, generator);
    const std::vector<int64_t> ids(batch.inputs.begin(), batch.inputs.begin() + static_cast<std::ptrdiff_t>(given));
    TokenText text(data.tokenizer());
    Sample sample;
    const auto add = [&](int64_t id, std::string& to) {
      sample.ids.push_back(id);
      sample.pieces.push_back(data.tokenizer() != nullptr ? text.add(id) : data.token_name(id) + ' ');
      to += sample.pieces.back();
    };
    for (const int64_t id : ids) add(id, sample.prompt);
    sample.given = given;
    const Generated made = generate(trainer.model(), ids, {.tokens = tokens}, generator);
    for (const int64_t id : made.ids) add(id, sample.continuation);
    const std::string rest = text.finish();
    sample.continuation += rest;
    sample.pieces.back() += rest;
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace onestep::train
