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

/// A prompt and what was generated.
struct Text {
  std::vector<int64_t> ids;
  ModelCache cache;
  int64_t read = 0;  // tokens that the cache has seen

  /// The last `count` tokens: [1, count]
  Tensor last(int64_t count) const { return from_values(std::span(ids).last(static_cast<size_t>(count)), {1, count}); }
  int64_t size() const { return std::ssize(ids); }
};

/// Reads growing texts: logits after all of each.
class Reader {
 public:
  Reader(const LanguageModel& model, bool use_cache) : model_(model), use_cache_(use_cache) {}

  /// The logits [V] after each text: together for those of which only the last token is new.
  std::vector<Tensor> logits_after(std::vector<Text>& texts) const {
    std::vector<Tensor> logits(texts.size()), tokens;
    std::vector<ModelCache*> caches;
    std::vector<size_t> together;
    for (size_t i = 0; i < texts.size(); ++i) {
      Text& text = texts[i];
      if (!use_cache_ || text.cache.empty() || text.read == model_.context_length()) {
        logits[i] = logits_after_all(text);
        continue;
      }
      together.push_back(i);
      tokens.push_back(text.last(1));
      caches.push_back(&text.cache);
      ++text.read;
    }
    if (together.empty()) return logits;
    const Tensor rows = model_.next_logits(cat(tokens), caches);  // [B, V]
    for (size_t i = 0; i < together.size(); ++i) logits[together[i]] = rows[static_cast<int64_t>(i)];
    return logits;
  }

 private:
  /// Reads as much of the text as the context holds.
  Tensor logits_after_all(Text& text) const {
    const int64_t length = std::min(text.size(), model_.context_length());
    if (!use_cache_) return model_.forward(text.last(length)).select(1, -1)[0];
    text.cache.clear();
    text.read = length;
    return model_.next_logits(text.last(length), text.cache)[0];
  }

  const LanguageModel& model_;
  bool use_cache_;
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
  const Prompt prompts[] = {{prompt, &generator}};
  return generate(model, prompts, options, [&](size_t, int64_t token) { on_token ? on_token(token) : void(); })[0];
}

std::vector<Generated> generate(LanguageModel& model, std::span<const Prompt> prompts, const GenerateOptions& options,
                                const std::function<void(size_t, int64_t)>& on_token) {
  check_sampling(options.sampling);
  std::vector<Text> texts;
  for (const Prompt& prompt : prompts) {
    check_prompt(model, prompt.ids);
    texts.push_back({.ids = {prompt.ids.begin(), prompt.ids.end()}, .cache = {}});
  }
  const NoGradGuard no_grad;
  const nn::EvaluationMode mode(model);
  const Reader reader(model, options.cache);
  std::vector<Generated> results(texts.size());
  for (int64_t step = 0; step < options.tokens; ++step) {
    const std::vector<Tensor> logits = reader.logits_after(texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      ONESTEP_CHECK(DivergedError, all(isfinite(logits[i])).item<bool>(),
                    "generate: the logits are not finite: the model has diverged or its file was damaged");
      const int64_t token = choose_token(logits[i], options.sampling, *prompts[i].generator);
      results[i].ids.push_back(token);
      results[i].logprobs.push_back(log_softmax(logits[i], -1)[token].item());
      texts[i].ids.push_back(token);
      if (on_token) on_token(i, token);
    }
  }
  return results;
}

}  // namespace onestep::train
