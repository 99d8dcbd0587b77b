#include "train/samples.h"

#include <algorithm>
#include <span>

#include "train/generate.h"
#include "train/utf8.h"

namespace onestep::train {
namespace {

constexpr int64_t kTokens = 100;

/// What ids stand for; `<58>` for one that the tokenizer does not have (a model may know more tokens than the data).
std::string text_of(std::span<const int64_t> ids, const Tokenizer* tokenizer) {
  std::string bytes;
  std::vector<int64_t> known;
  const auto flush = [&] {
    if (!known.empty()) bytes += tokenizer->decode(known);
    known.clear();
  };
  for (const int64_t id : ids) {
    if (tokenizer != nullptr && id < tokenizer->vocab_size()) {
      known.push_back(id);
      continue;
    }
    flush();
    bytes += tokenizer == nullptr ? std::to_string(id) + ' ' : '<' + std::to_string(id) + '>';
  }
  flush();
  Utf8Stream stream;
  const std::string whole = stream.add(bytes);
  return whole + stream.finish();
}

}  // namespace

std::vector<Sample> write_samples(Trainer& trainer, int64_t count) {
  const Data& data = trainer.data();
  Generator generator = trainer.evaluation_generator();
  const EvaluationMode mode(trainer.model());
  std::vector<Sample> samples;
  for (int64_t i = 0; i < count; ++i) {
    const Batch batch = data.eval_batch(1, generator);
    const auto given = static_cast<std::ptrdiff_t>(std::clamp<int64_t>(batch.length / 2, 1, 16));
    std::vector<int64_t> ids(batch.inputs.begin(), batch.inputs.begin() + given);
    const std::string prompt = text_of(ids, data.tokenizer());
    const Generated made = generate(trainer.model(), ids, {.tokens = kTokens}, generator);
    ids.insert(ids.end(), made.ids.begin(), made.ids.end());
    // Both together, since what a word looks like may depend on the one before it.
    const std::string whole = text_of(ids, data.tokenizer());
    samples.push_back({prompt, whole.starts_with(prompt) ? whole.substr(prompt.size()) : text_of(made.ids, data.tokenizer())});
  }
  return samples;
}

}  // namespace onestep::train
