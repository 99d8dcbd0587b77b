#pragma once
// Text from a model, one token after the other.
#include <functional>
#include <span>
#include <vector>

#include "train/models/language_model.h"

namespace onestep::train {

/// How a token is chosen from the logits.
struct SamplingOptions {
  double temperature = 1.0;  ///< Logits are divided by it; 0 takes the most likely token (greedy).
  int64_t top_k = 0;         ///< Only the k most likely tokens, and those as likely as the k-th; 0 = all.
  double top_p = 1.0;  ///< Of those, only the most likely ones whose probabilities first add up to p (Holtzman et al. 2020).
};

/// Throws ConfigError unless temperature >= 0, top_k >= 0 and 0 < top_p <= 1.
void check_sampling(const SamplingOptions& options);

/// The probabilities from which a token is drawn: softmax(logits / temperature) over the tokens that top_k and top_p leave, 0
/// for the others: [V] -> [V]. Needs temperature > 0.
Tensor sampling_probabilities(const Tensor& logits, const SamplingOptions& options);

/// A token by logits [V]: the first of the most likely ones if temperature is 0, else drawn as torch.multinomial draws one.
int64_t choose_token(const Tensor& logits, const SamplingOptions& options, Generator& generator);

struct GenerateOptions {
  int64_t tokens = 0;  ///< How many.
  SamplingOptions sampling = {};
  bool cache = true;  ///< Whether keys and values of earlier tokens are kept; changes the time and nothing else.
};

struct Generated {
  std::vector<int64_t> ids;      ///< Without the prompt.
  std::vector<double> logprobs;  ///< Of each, by log_softmax of the logits as they are: temperature 1, all tokens.
};

/// A text to continue, and what its tokens are drawn from.
struct Prompt {
  std::span<const int64_t> ids;
  Generator* generator;
};

/// Throws ConfigError for an empty prompt and for ids outside the vocabulary.
void check_prompt(const LanguageModel& model, std::span<const int64_t> prompt);

/// Continues `prompt`. The model sees the last context_length tokens, as in nanoGPT: once the context is full it slides by one
/// token at a time, and since every token then stands at another position, all of it is run anew. Calls `on_token` with each
/// token as it comes, if given. The model is in evaluation mode meanwhile. Throws ConfigError as check_prompt and
/// check_sampling do, DivergedError if logits are not finite.
Generated generate(LanguageModel& model, std::span<const int64_t> prompt, const GenerateOptions& options, Generator& generator,
                   const std::function<void(int64_t)>& on_token = {});

/// The same for several prompts at once: what each gives alone, in less time, since every weight is read once for all of them.
/// `on_token` gets the place of the prompt, too.
std::vector<Generated> generate(LanguageModel& model, std::span<const Prompt> prompts, const GenerateOptions& options,
                                const std::function<void(size_t, int64_t)>& on_token = {});

}  // namespace onestep::train
