#include "train/models/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "autograd/anomaly.h"
#include "autograd/creation.h"
#include "autograd/operators.h"
#include "autograd/ops_math.h"
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

/// True for the tokens after those that, most likely first, add up to p.
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
  const Prompt& prompt;
  std::vector<int64_t> ids = {prompt.ids.begin(), prompt.ids.end()};
  TextMemory own = {};
  Generated result = {};

  TextMemory& memory() { return prompt.memory != nullptr ? *prompt.memory : own; }
  /// The last `count` tokens: [1, count]
  Tensor last(int64_t count) const { return from_values(std::span(ids).last(static_cast<size_t>(count)), {1, count}); }
  int64_t size() const { return std::ssize(ids); }
};

/// Reads growing texts: what follows all of each.
class Reader {
 public:
  Reader(const LanguageModel& model, bool use_cache) : model_(model), use_cache_(use_cache) {}

  /// Logits [V] of each text's next token; together for those that have as many new tokens. Throws DivergedError where one is
  /// not finite.
  std::vector<Tensor> next_logits(const std::vector<Text*>& texts) const {
    std::vector<Tensor> next(texts.size());
    std::map<int64_t, std::vector<size_t>> by_new_tokens;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (use_cache_)
        by_new_tokens[begin_reading(*texts[i])].push_back(i);
      else
        take(model_.forward(texts[i]->last(fitting(*texts[i]))).select(1, -1), std::span(&i, 1), next);
    }
    for (const auto& [count, members] : by_new_tokens) {
      const auto at_once = static_cast<size_t>(std::max<int64_t>(kTokensAtOnce / count, 1));
      for (size_t first = 0; first < members.size(); first += at_once)
        read(texts, std::span(members).subspan(first, std::min(at_once, members.size() - first)), count, next);
    }
    return next;
  }

 private:
  static constexpr int64_t kTokensAtOnce =
      1024;  ///< At most, but for those of one text: what is computed of each takes memory.

  /// As many tokens of the text as the context holds.
  int64_t fitting(const Text& text) const { return std::min(text.size(), model_.context_length()); }

  /// Counts the text as read, empties its cache where it has outgrown the context, and returns how many tokens are not in it.
  int64_t begin_reading(Text& text) const {
    TextMemory& memory = text.memory();
    const bool goes_on = 0 < memory.read && memory.read < text.size() && text.size() <= model_.context_length();
    if (!goes_on) memory = {};
    const int64_t count = goes_on ? text.size() - memory.read : fitting(text);
    memory.read = text.size();
    return count;
  }

  /// Reads `members`, each of which has `count` new tokens.
  void read(const std::vector<Text*>& texts, std::span<const size_t> members, int64_t count, std::vector<Tensor>& next) const {
    std::vector<Tensor> tokens;
    std::vector<ModelCache*> caches;
    for (const size_t i : members) {
      tokens.push_back(texts[i]->last(count));
      caches.push_back(&texts[i]->memory().cache);
    }
    take(model_.next_logits(cat(tokens), caches), members, next);
  }

  /// Logits [B, V] of B members.
  static void take(const Tensor& logits, std::span<const size_t> members, std::vector<Tensor>& next) {
    ONESTEP_CHECK(DivergedError, all_finite(logits),
                  "generate: the logits are not finite: the model has diverged or its file was damaged");
    for (size_t i = 0; i < members.size(); ++i) next[members[i]] = logits[static_cast<int64_t>(i)];
  }

  const LanguageModel& model_;
  bool use_cache_;
};

/// Appends a token to the text, and returns it.
int64_t grow(Text& text, const Tensor& logits, const GenerateOptions& options) {
  const double penalty = options.sampling.repetition_penalty;
  const int64_t token = choose_token(penalty == 1 ? logits : penalize_repetition(logits, text.ids, penalty), options.sampling,
                                     *text.prompt.generator);
  text.ids.push_back(token);
  text.result.ids.push_back(token);
  const Tensor logprobs = log_softmax(logits, -1);  // of one text after the other: in memory that is in the caches
  text.result.logprobs.push_back(logprobs[token].item());
  if (options.alternatives > 0) text.result.alternatives.push_back(most_likely(logprobs, options.alternatives));
  return token;
}

}  // namespace

std::vector<TokenLogprob> most_likely(const Tensor& logprobs, int64_t count) {
  const std::vector<double> values = logprobs.to_vector<double>();
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto of = [&](int64_t id) { return values[static_cast<size_t>(id)]; };
  const auto end = order.begin() + std::min<int64_t>(count, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(),
                    [&](int64_t a, int64_t b) { return of(a) > of(b) || (of(a) == of(b) && a < b); });
  std::vector<TokenLogprob> likely;
  for (auto id = order.begin(); id != end; ++id) likely.push_back({*id, of(*id)});
  return likely;
}

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
  ONESTEP_CHECK(ConfigError, o.min_p >= 0 && o.min_p <= 1, "generate: min_p must be from 0 to 1: got ", o.min_p);
  ONESTEP_CHECK(ConfigError, o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty),
                "generate: repetition_penalty must be above 0: got ", o.repetition_penalty);
}

Tensor penalize_repetition(const Tensor& logits, std::span<const int64_t> ids, double penalty) {
  Tensor occurs = zeros(logits.shape(), DType::boolean);
  bool* const marks = occurs.mutable_data<bool>();
  for (const int64_t id : ids) marks[id] = true;
  return where(occurs, where(gt(logits, 0), logits / penalty, logits * penalty), logits);
}

Tensor sampling_probabilities(const Tensor& logits, const SamplingOptions& o) {
  // At most 0, so that no temperature makes it overflow to inf; a smaller one than 1e-30 would be 0 in float32.
  Tensor scaled = (logits - max(logits)) / std::max(o.temperature, 1e-30);
  if (0 < o.top_k && o.top_k < logits.numel()) scaled = masked_fill(scaled, beyond_top_k(logits, o.top_k), kNever);
  if (o.top_p < 1) scaled = masked_fill(scaled, beyond_top_p(softmax(scaled, -1), o.top_p), kNever);
  if (o.min_p > 0) {
    const Tensor probabilities = softmax(scaled, -1);
    scaled = masked_fill(scaled, lt(probabilities, max(probabilities) * o.min_p), kNever);
  }
  return softmax(scaled, -1);
}

int64_t choose_token(const Tensor& logits, const SamplingOptions& options, Generator& generator) {
  if (options.temperature == 0) return argmax(logits).item<int64_t>();
  return multinomial(sampling_probabilities(logits, options), 1, /*replacement=*/false, generator).item<int64_t>();
}

Generated generate(LanguageModel& model, std::span<const int64_t> prompt, const GenerateOptions& options, Generator& generator,
                   const std::function<void(int64_t)>& on_token) {
  const Prompt prompts[] = {{prompt, &generator}};
  return generate(model, prompts, options,
                  [&](size_t, const Generated& so_far) { on_token ? on_token(so_far.ids.back()) : void(); })[0];
}

std::vector<Generated> generate(LanguageModel& model, std::span<const Prompt> prompts, const GenerateOptions& options,
                                const std::function<void(size_t, const Generated&)>& on_token) {
  check_sampling(options.sampling);
  ONESTEP_CHECK(ConfigError, model.num_classes() == 0, "generate: a classifier of ", model.num_classes(),
                " labels writes no text");
  std::vector<Text> texts;
  for (const Prompt& prompt : prompts) {
    check_prompt(model, prompt.ids);
    texts.push_back({.prompt = prompt});
  }
  const NoGradGuard no_grad;
  const nn::EvaluationMode mode(model);
  const Reader reader(model, options.cache);
  std::vector<Text*> growing(texts.size());
  std::transform(texts.begin(), texts.end(), growing.begin(), [](Text& text) { return &text; });
  for (int64_t step = 0; step < options.tokens && !growing.empty(); ++step) {
    const std::vector<Tensor> next = reader.next_logits(growing);
    for (size_t i = 0; i < growing.size(); ++i) {
      Text& text = *growing[i];
      const int64_t token = grow(text, next[i], options);
      if (on_token) on_token(static_cast<size_t>(&text - texts.data()), text.result);
      text.result.ended = text.prompt.ends && text.prompt.ends(token);
    }
    std::erase_if(growing, [](const Text* text) { return text->result.ended; });
  }
  std::vector<Generated> results(texts.size());
  std::transform(texts.begin(), texts.end(), results.begin(), [](Text& text) { return std::move(text.result); });
  return results;
}

}  // namespace onestep::train
