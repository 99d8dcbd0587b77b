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
  double min_p = 0.0;  ///< Of those, only tokens at least min_p times as likely as the most likely (Nguyen et al. 2024).
  double repetition_penalty = 1.0;  ///< Of tokens that the text has: penalize_repetition. 1 is none.
};

/// Throws ConfigError unless temperature >= 0, top_k >= 0, 0 < top_p <= 1, 0 <= min_p <= 1 and repetition_penalty > 0.
void check_sampling(const SamplingOptions& options);

/// Logits [V] in which those of the tokens in `ids` are divided by `penalty` where they are positive and multiplied by it
/// where they are not (Keskar et al. 2019, as in transformers): above 1 the text repeats itself less.
Tensor penalize_repetition(const Tensor& logits, std::span<const int64_t> ids, double penalty);

/// The probabilities from which a token is drawn: softmax(logits / temperature) over the tokens that top_k, top_p and min_p
/// leave, 0 for the others: [V] -> [V]. Needs temperature > 0. The penalty of repetition is not part of it.
Tensor sampling_probabilities(const Tensor& logits, const SamplingOptions& options);

/// A token by logits [V]: the first of the most likely ones if temperature is 0, else drawn as torch.multinomial draws one.
int64_t choose_token(const Tensor& logits, const SamplingOptions& options, Generator& generator);

struct GenerateOptions {
  int64_t tokens = 0;  ///< How many at most.
  SamplingOptions sampling = {};
  bool cache = true;         ///< Whether keys and values of earlier tokens are kept; changes the time and nothing else.
  int64_t alternatives = 0;  ///< How many of the most likely tokens are kept for each one.
};

/// A token and its logarithm of probability by log_softmax of the logits as they are: temperature 1, all tokens.
struct TokenLogprob {
  int64_t id;
  double logprob;
};

/// The tokens that have the `count` largest of these logarithms (or probabilities), largest first, ties by the smaller id.
std::vector<TokenLogprob> most_likely(const Tensor& logprobs, int64_t count);

struct Generated {
  std::vector<int64_t> ids = {};                             ///< Without the prompt.
  std::vector<double> logprobs = {};                         ///< Of each, as TokenLogprob has it.
  std::vector<std::vector<TokenLogprob>> alternatives = {};  ///< For each the most likely tokens, most likely first.
  bool ended = false;                                        ///< By Prompt::ends, not by the number of tokens.
};

/// What a model has read of a text and remembers, so that the text may be continued later without reading it again.
struct TextMemory {
  ModelCache cache = {};
  int64_t read = 0;  ///< Tokens of the text.
};

/// A text to continue, and what its tokens are drawn from.
struct Prompt {
  std::span<const int64_t> ids;
  Generator* generator;
  std::function<bool(int64_t)> ends = {};  ///< Whether the text ends with this token, which it keeps. Asked for each once.
  TextMemory* memory = nullptr;            ///< Of the beginning of `ids`; brought up to date. Null: read all.
};

/// Throws ConfigError for an empty prompt and for ids outside the vocabulary.
void check_prompt(const LanguageModel& model, std::span<const int64_t> prompt);

/// Continues `prompt` by up to options.tokens tokens. The model attends to the last context_length tokens, as in nanoGPT: once
/// the context is full it slides by one token at a time, and since every token is then at another position, all of it is
/// run again. Calls `on_token` with each token as it comes, if given. The model is in evaluation mode meanwhile. Throws
/// ConfigError as check_prompt and check_sampling do, DivergedError if logits are not finite.
Generated generate(LanguageModel& model, std::span<const int64_t> prompt, const GenerateOptions& options, Generator& generator,
                   const std::function<void(int64_t)>& on_token = {});

/// The same for several prompts at once: what each gives alone, in less time, since every weight is read once for all of them.
/// `on_token` gets the place of the prompt and what was generated for it so far.
std::vector<Generated> generate(LanguageModel& model, std::span<const Prompt> prompts, const GenerateOptions& options,
                                const std::function<void(size_t, const Generated&)>& on_token = {});

}  // namespace onestep::train
