#include "train/models/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "autograd/operators.h"
#include "autograd/ops_order.h"
#include "autograd/ops_shape.h"

namespace onestep::train {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// True for the tokens that are less likely than the k-th.
Tensor beyond_top_k(const Tensor& logits, int64_t k) {
  std::vector<double> sorted = logits.to_vector<double>();
  const auto kth = sorted.begin() + (k - 1);
  std::nth_element(sorted.begin(), kth, sorted.end(), std::greater<>());
  return lt(logits, *kth);
}

/// True for the tokens behind those that, most likely first, add up to p.
Tensor beyond_top_p(const Tensor& probabilities, double p) {
  const std::vector<double> values = probabilities.to_vector<double>();
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  Tensor beyond = zeros(probabilities.shape(), DType::boolean);
  bool* const left_out = beyond.mutable_data<bool>();
  double total = 0;
  for (const size_t i : order) {
    left_out[i] = total >= p;
    total += values[i];
  }
  return beyond;
}

/// Reads a growing text: logits after all of it.
class Reader {
 public:
  Reader(const LanguageModel& model, bool use_cache) : model_(model), use_cache_(use_cache) {}

  /// The logits [V] after `text`, which starts with the text of the call before.
  Tensor logits_after(const std::vector<int64_t>& text) {
    const auto length = std::min(static_cast<int64_t>(text.size()), model_.context_length());
    if (!use_cache_) return model_.forward(last(text, length)).select(1, -1)[0];
    const int64_t unread = static_cast<int64_t>(text.size()) - read_;
    read_ = static_cast<int64_t>(text.size());
    const bool fits = !cache_.empty() && cache_[0].length() + unread <= model_.context_length();
    if (!fits) cache_.clear();
    return model_.next_logits(last(text, fits ? unread : length), cache_)[0];
  }

 private:
  /// The last `count` tokens: [1, count]
  static Tensor last(const std::vector<int64_t>& text, int64_t count) {
    return from_values(std::span(text).last(static_cast<size_t>(count)), {1, count});
  }

  const LanguageModel& model_;
  bool use_cache_;
  ModelCache cache_;
  int64_t read_ = 0;  // tokens of the text that the cache has seen
};

}  // namespace

void check_prompt(const LanguageModel& model, std::span<const int64_t> prompt) {
  ONESTEP_CHECK(ConfigError, !prompt.empty(), "generate: the prompt is empty (it takes at least one token to continue)");
  for (const int64_t id : prompt)
    ONESTEP_CHECK(ConfigError, 0 <= id && id < model.vocab_size(), "generate: the prompt has no token ", id,
                  ": ids are from 0 to ", model.vocab_size() - 1);
}

void check_sampling(const SamplingOptions& o) {
  ONESTEP_CHECK(ConfigError, o.temperature >= 0 && std::isfinite(o.temperature),
                "generate: temperature must be at least 0: got ", o.temperature);
  ONESTEP_CHECK(ConfigError, o.top_k >= 0, "generate: top_k must be at least 0: got ", o.top_k);
  ONESTEP_CHECK(ConfigError, o.top_p > 0 && o.top_p <= 1, "generate: top_p must be above 0 and at most 1: got ", o.top_p);
}

Tensor sampling_probabilities(const Tensor& logits, const SamplingOptions& o) {
  // At most 0, so that no temperature makes it overflow to inf; a smaller one than 1e-30 would be 0 in float32.
  Tensor scaled = (logits - max(logits)) / std::max(o.temperature, 1e-30);
  if (0 < o.top_k && o.top_k < logits.numel()) scaled = masked_fill(scaled, beyond_top_k(logits, o.top_k), kNever);
  if (o.top_p < 1) scaled = masked_fill(scaled, beyond_top_p(softmax(scaled, -1), o.top_p), kNever);
  return softmax(scaled, -1);
}

int64_t choose_token(const Tensor& logits, const SamplingOptions& options, Generator& generator) {
  if (options.temperature == 0) return argmax(logits).item<int64_t>();
  return multinomial(sampling_probabilities(logits, options), 1, /*replacement=*/false, generator).item<int64_t>();
}

Generated generate(LanguageModel& model, std::span<const int64_t> prompt, const GenerateOptions& options, Generator& generator,
                   const std::function<void(int64_t)>& on_token) {
  check_sampling(options.sampling);
  check_prompt(model, prompt);
  const NoGradGuard no_grad;
  const nn::EvaluationMode mode(model);
  std::vector<int64_t> text(prompt.begin(), prompt.end());
  Reader reader(model, options.cache);
  Generated result;
  for (int64_t i = 0; i < options.tokens; ++i) {
    const Tensor logits = reader.logits_after(text);
    ONESTEP_CHECK(DivergedError, all(isfinite(logits)).item<bool>(),
                  "generate: the logits are not finite: the model has diverged or its file was damaged");
    const int64_t token = choose_token(logits, options.sampling, generator);
    result.ids.push_back(token);
    result.logprobs.push_back(log_softmax(logits, -1)[token].item());
    text.push_back(token);
    if (on_token) on_token(token);
  }
  return result;
}

}  // namespace onestep::train
