#include "train/samples.h"

#include <algorithm>
#include <utility>

#include "autograd/ops_math.h"
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

bool counts(int64_t target) { return target != kIgnoreIndex; }

Parts parts_of(const Batch& batch) {
  const auto first = std::find_if(batch.targets.begin(), batch.targets.end(), counts);
  const int64_t given = first - batch.targets.begin() + 1;
  if (given > 1) return {given, std::find_if_not(first, batch.targets.end(), counts) - first};
  return {std::clamp<int64_t>(batch.length / 2, 1, 16), kTokens};
}

/// Puts a sample together from ids.
struct Writer {
  explicit Writer(const Data& from) : data(from), text(from.tokenizer()) {}
  void add(int64_t id, std::string& to) {
    sample.ids.push_back(id);
    sample.pieces.push_back(data.tokenizer() != nullptr ? text.add(id) : data.token_name(id) + ' ');
    to += sample.pieces.back();
  }
  void finish(std::string& to) {
    const std::string rest = text.finish();
    to += rest;
    sample.pieces.back() += rest;
  }

  const Data& data;
  StreamDecoder text;
  Sample sample;
};

/// A text, and the label that a classifier gives it.
Sample labelled(Trainer& trainer, const Batch& batch) {
  const NoGradGuard no_grad;
  const Data& data = trainer.data();
  const auto last = std::find_if(batch.targets.begin(), batch.targets.end(), counts);
  const auto at = static_cast<size_t>(last - batch.targets.begin());
  const std::vector<int64_t> predicted = argmax(forward_batch(trainer.model(), batch), -1).to_vector<int64_t>();
  Writer writer(data);
  for (size_t i = 0; i <= at; ++i) writer.add(batch.inputs[i], writer.sample.prompt);
  writer.finish(writer.sample.prompt);
  Sample sample = std::move(writer.sample);
  sample.given = std::ssize(sample.ids);
  const std::string &given = data.labels()[static_cast<size_t>(predicted[at])],
                    &right = data.labels()[static_cast<size_t>(*last)];
  sample.continuation = " -> ";
  sample.continuation += given;
  if (given != right) sample.continuation.append(" (").append(right).append(")");
  sample.pieces.push_back(sample.continuation);
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
    Writer writer(data);
    for (const int64_t id : ids) writer.add(id, writer.sample.prompt);
    writer.sample.given = given;
    const Generated made = generate(trainer.model(), ids, {.tokens = tokens}, generator);
    for (const int64_t id : made.ids) writer.add(id, writer.sample.continuation);
    writer.finish(writer.sample.continuation);
    samples.push_back(std::move(writer.sample));
  }
  return samples;
}

}  // namespace onestep::train
