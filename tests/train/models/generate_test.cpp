// Generation: the cache changes no bit, sampling follows the definitions, and a seed fixes the text.
#include "train/models/generate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nn/pack_weights.h"
#include "tests/nn/check.h"
#include "train/trainer.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::refusal;

namespace {

using Ids = std::vector<int64_t>;
constexpr int64_t kVocab = 17;

std::unique_ptr<LanguageModel> make(ModelConfig config, Generator& generator) {
  config.d_ff = 4 * config.d_model;
  auto model = make_language_model(config, kVocab, generator);
  const NoGradGuard no_grad;
  for (const Tensor& parameter : model->parameters()) copy_(parameter, randn(parameter.shape(), generator) * 0.3);
  model->eval();
  return model;
}

ModelConfig gpt(int64_t context_length) {
  return {.kind = ModelKind::gpt, .d_model = 8, .num_heads = 2, .context_length = context_length, .num_layers = 1};
}

struct Named {
  std::string name;
  ModelConfig config;
};

/// Every kind of attention, and the GPT with each option.
std::vector<Named> models(int64_t context_length) {
  std::vector<Named> all;
  for (const AttentionKind kind : values_of<AttentionKind>())
    all.push_back(
        {std::string(name_of(kind)), {.attention = kind, .d_model = 8, .num_heads = 1, .context_length = context_length}});
  const auto add = [&](const char* name, auto change) {
    ModelConfig config = gpt(context_length);
    config.num_layers = 2;
    change(config);
    all.push_back({name, config});
  };
  add("gpt", [](ModelConfig&) {});
  add("gpt with dropout", [](ModelConfig& c) { c.dropout = 0.5; });
  add("gpt without biases", [](ModelConfig& c) { c.bias = c.tie_weights = false; });
  add("gpt with one head of keys and values", [](ModelConfig& c) { c.num_kv_heads = 1; });
  add("gpt with a window", [](ModelConfig& c) { c.window = 9; });
  add("gpt with rope", [](ModelConfig& c) { c.rope = true; });
  add("gpt with everything", [](ModelConfig& c) {
    c.rope = true, c.window = 20, c.num_kv_heads = 1, c.norm = NormKind::rms_norm, c.activation = Activation::swiglu,
    c.bias = false;
  });
  return all;
}

Ids prompt_of(int64_t length, Generator& generator) { return randint(0, kVocab, {length}, generator).to_vector<int64_t>(); }

/// Prompts of many lengths, each continued by `tokens` with and without cache; returns how many different ids came out.
size_t check_cache(LanguageModel& model, int64_t prompts, int64_t tokens, const SamplingOptions& sampling) {
  Generator generator(5);
  std::vector<bool> seen(kVocab);
  for (int64_t i = 0; i < prompts; ++i) {
    const Ids prompt = prompt_of(1 + i % 40, generator);
    Generator a(i), b(i);
    const Generated with = generate(model, prompt, {tokens, sampling, true}, a);
    const Generated without = generate(model, prompt, {tokens, sampling, false}, b);
    REQUIRE(with.ids.size() == static_cast<size_t>(tokens));
    CHECK(with.ids == without.ids);
    CHECK(with.logprobs == without.logprobs);
    for (const int64_t id : with.ids) seen[static_cast<size_t>(id)] = true;
  }
  return static_cast<size_t>(std::count(seen.begin(), seen.end(), true));
}

}  // namespace

TEST_CASE("generate: the logits with a cache are those without, bit for bit, in every model") {
  for (const Named& named : models(300)) {
    CAPTURE(named.name);
    Generator generator(7);
    const auto model = make(named.config, generator);
    const Tensor tokens = randint(0, kVocab, {2, 300}, generator);
    ModelCache first, second;
    ModelCache* const caches[] = {&first, &second};
    int64_t read = 0;
    for (const int64_t count : {1, 1, 7, 40, 1, 25, 180, 1, 44}) {
      const Tensor logits = model->next_logits(tokens.slice(1, read, read + count), caches);
      read += count;
      CHECK(equal(logits, model->forward(tokens.slice(1, 0, read)).detach().select(1, -1)));
    }
    CHECK(refusal<ShapeError>([&] {
            model->next_logits(tokens.slice(1, 0, 1), caches);
          }).starts_with("language model: tokens of shape [2, 1] after 300 others "));
    CHECK(refusal<ShapeError>([&] { model->next_logits(tokens.slice(1, 0, 0), caches); }) ==
          "language model: no tokens: [2, 0]");
  }
}

TEST_CASE("generate: 100 prompts of 200 greedy tokens are the same with and without cache") {
  Generator generator(1);
  const auto model = make(gpt(48), generator);
  CHECK(check_cache(*model, 100, 200, {.temperature = 0}) > 3);
}

TEST_CASE("generate: 100 prompts of 200 sampled tokens are the same with and without cache") {
  Generator generator(1);
  const auto model = make(gpt(48), generator);
  CHECK(check_cache(*model, 100, 200, {.temperature = 0.8, .top_k = 12, .top_p = 0.95}) > 10);
}

TEST_CASE("generate: the cache changes no id in any model") {
  for (const Named& named : models(24)) {
    CAPTURE(named.name);
    Generator generator(1);
    const auto model = make(named.config, generator);
    CHECK(check_cache(*model, 3, 60, {.temperature = 0}) >= 1);
    CHECK(check_cache(*model, 3, 60, {}) > 5);
  }
}

TEST_CASE("generate: several prompts at once give what each gives alone") {
  for (const Named& named : models(24)) {
    CAPTURE(named.name);
    Generator generator(1), draws(3);
    const auto model = make(named.config, generator);
    std::vector<Ids> prompts;
    for (const int64_t length : {5, 1, 30, 5, 22}) prompts.push_back(prompt_of(length, draws));
    for (const bool cache : {true, false}) {
      std::vector<Generator> generators;
      for (int64_t i = 0; i < std::ssize(prompts); ++i) generators.emplace_back(i);
      std::vector<Prompt> all;
      for (size_t i = 0; i < prompts.size(); ++i) all.push_back({prompts[i], &generators[i]});
      const GenerateOptions options = {.tokens = 30, .cache = cache};
      std::vector<Ids> heard(prompts.size());
      const std::vector<Generated> together = generate(
          *model, all, options, [&](size_t prompt, const Generated& so_far) { heard[prompt].push_back(so_far.ids.back()); });
      REQUIRE(together.size() == prompts.size());
      for (size_t i = 0; i < prompts.size(); ++i) {
        Generator own(static_cast<int64_t>(i));
        const Generated alone = generate(*model, prompts[i], options, own);
        CHECK(together[i].ids == alone.ids);
        CHECK(together[i].logprobs == alone.logprobs);
        CHECK(heard[i] == alone.ids);
      }
    }
  }
  Generator generator(1);
  const auto model = make(gpt(8), generator);
  CHECK(generate(*model, std::span<const Prompt>(), {.tokens = 3}).empty());
  const Ids good = {1}, bad = {kVocab};
  const Prompt prompts[] = {{good, &generator}, {bad, &generator}};
  CHECK(refusal<ConfigError>([&] { generate(*model, prompts, {.tokens = 3}); }).starts_with("generate: the prompt "));
}

TEST_CASE("generate: the logits of texts with caches of their own are those of each alone") {
  for (const Named& named : models(40)) {
    CAPTURE(named.name);
    Generator generator(7);
    const auto model = make(named.config, generator);
    const Tensor tokens = randint(0, kVocab, {3, 40}, generator);
    std::vector<ModelCache> caches(3), alone(3);
    std::vector<ModelCache*> pointers;
    const auto read = [&](int64_t i, int64_t begin, int64_t end, ModelCache& cache) {
      ModelCache* const own[] = {&cache};
      return model->next_logits(tokens.slice(0, i, i + 1).slice(1, begin, end), own);
    };
    for (int64_t i = 0; i < 3; ++i) {
      const auto b = static_cast<size_t>(i);
      if (i > 0) read(i, 0, 5 * i, caches[b]);  // the first one is empty
      if (i > 0) read(i, 0, 5 * i, alone[b]);
      pointers.push_back(&caches[b]);
    }
    for (const int64_t count : {1, 3, 1}) {
      const Tensor logits = model->next_logits(tokens.slice(1, 20, 20 + count), pointers);
      CHECK(logits.shape() == Shape{3, kVocab});
      for (int64_t i = 0; i < 3; ++i) CHECK(equal(logits[i], read(i, 20, 20 + count, alone[static_cast<size_t>(i)])[0]));
    }
    CHECK(refusal<ShapeError>([&] { model->next_logits(tokens.slice(1, 0, 36), pointers); }).find(" after ") !=
          std::string::npos);
    CHECK(refusal<ShapeError>([&] { model->next_logits(tokens.slice(0, 0, 2), pointers); }) ==
          "language model: tokens of shape [2, 40] for 3 caches (needs [B, n] and a cache for each of the B texts)");
  }
}

TEST_CASE("generate: with packed weights the cache and other prompts change no bit") {
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::int8}) {
    for (const Named& named : models(24)) {
      CAPTURE(named.name);
      Generator generator(1);
      const auto model = make(named.config, generator), same = [&] {
        Generator again(1);
        return make(named.config, again);
      }();
      nn::pack_weights(*model, format);
      CHECK(check_cache(*model, 3, 40, {}) > 5);
      Generator a(1), b(2), c(1);
      const Ids first = {1, 2, 3}, second = {4};
      const Prompt prompts[] = {{first, &a}, {second, &b}};
      CHECK(generate(*model, prompts, {.tokens = 30})[0].logprobs == generate(*model, first, {.tokens = 30}, c).logprobs);
      if (format != WeightFormat::bf16) continue;
      const NoGradGuard no_grad;  // the same model with rounded weights
      for (nn::Module* module : same->modules())
        if (auto* linear = dynamic_cast<nn::Linear*>(module)) copy_(linear->weight, linear->weight.to(kBFloat16).to(kFloat));
      Generator d(1);
      c = Generator(1);
      CHECK(generate(*model, first, {.tokens = 30}, c).logprobs == generate(*same, first, {.tokens = 30}, d).logprobs);
    }
  }
}

TEST_CASE("generate: greedy takes the most likely token and the window slides as in nanoGPT") {
  Generator generator(2);
  const auto model = make(gpt(8), generator);
  Ids text = prompt_of(5, generator);
  const Generated result = generate(*model, text, {20, {.temperature = 0}}, generator);
  for (size_t i = 0; i < 20; ++i) {
    const Ids window(text.end() - std::min<std::ptrdiff_t>(std::ssize(text), 8), text.end());
    const Tensor logits = model->forward(from_values(window, {1, std::ssize(window)})).detach()[0][-1];
    CHECK(result.ids[i] == argmax(logits).item<int64_t>());
    CHECK(result.logprobs[i] == log_softmax(logits, -1)[result.ids[i]].item());
    text.push_back(result.ids[i]);
  }
}

TEST_CASE("generate: a prompt longer than the context is read from behind") {
  Generator generator(2);
  const auto model = make(gpt(8), generator);
  const Ids prompt = prompt_of(30, generator), end(prompt.end() - 8, prompt.end());
  CHECK(generate(*model, prompt, {10, {.temperature = 0}}, generator).ids ==
        generate(*model, end, {10, {.temperature = 0}}, generator).ids);
}

TEST_CASE("generate: a seed fixes the text, and tokens are reported as they come") {
  Generator generator(2);
  const auto model = make(gpt(32), generator);
  Generator a(11), b(11), c(12);
  const std::string others = default_generator().state();
  Ids heard;
  const Generated first = generate(*model, Ids{3, 1}, {50}, a, [&](int64_t id) { heard.push_back(id); });
  CHECK(heard == first.ids);
  CHECK(generate(*model, Ids{3, 1}, {50}, b).ids == first.ids);
  CHECK(generate(*model, Ids{3, 1}, {50}, c).ids != first.ids);
  CHECK((default_generator().state() == others));
}

TEST_CASE("generate: a model in training is in training afterwards, and no dropout was drawn") {
  Generator generator(1), sampler(2);
  ModelConfig config = gpt(8);
  config.dropout = 0.5;
  const auto model = make(config, generator);
  const std::vector<int64_t> prompt{1, 2};
  const auto expected = generate(*model, prompt, {.tokens = 5, .sampling = {.temperature = 0}}, sampler).ids;
  model->train();
  CHECK(generate(*model, prompt, {.tokens = 5, .sampling = {.temperature = 0}}, sampler).ids == expected);
  CHECK(model->is_training());
}

TEST_CASE("generate: top_k and top_p leave the most likely tokens and their proportions") {
  const Tensor logits = log(tensor({0.1, 0.4, 0.05, 0.25, 0.2}));
  const auto close = [](const Tensor& got, const Tensor& want) { return allclose(got, want, 1e-5, 1e-7); };
  CHECK(close(sampling_probabilities(logits, {}), tensor({0.1, 0.4, 0.05, 0.25, 0.2})));
  CHECK(close(sampling_probabilities(logits, {.top_k = 2}), tensor({0.0, 0.4 / 0.65, 0.0, 0.25 / 0.65, 0.0})));
  CHECK(close(sampling_probabilities(logits, {.top_k = 99}), tensor({0.1, 0.4, 0.05, 0.25, 0.2})));
  CHECK(close(sampling_probabilities(logits, {.top_p = 0.6}), tensor({0.0, 0.4 / 0.65, 0.0, 0.25 / 0.65, 0.0})));
  CHECK(close(sampling_probabilities(logits, {.top_p = 0.7}), tensor({0.0, 0.4 / 0.85, 0.0, 0.25 / 0.85, 0.2 / 0.85})));
  CHECK(close(sampling_probabilities(logits, {.top_p = 0.01}), tensor({0.0, 1.0, 0.0, 0.0, 0.0})));
  CHECK(close(sampling_probabilities(logits, {.top_k = 3, .top_p = 0.5}), tensor({0.0, 0.4 / 0.65, 0.0, 0.25 / 0.65, 0.0})));
  const Tensor squared = tensor({0.01, 0.16, 0.0025, 0.0625, 0.04});
  CHECK(close(sampling_probabilities(logits, {.temperature = 0.5}), squared / sum(squared)));
  CHECK(close(sampling_probabilities(logits, {.temperature = 1e-300}), tensor({0.0, 1.0, 0.0, 0.0, 0.0})));
  CHECK(close(sampling_probabilities(tensor({1.0, 1.0, 0.0}), {.top_k = 1}), tensor({0.5, 0.5, 0.0})));
}

TEST_CASE("generate: tokens come as often as their probabilities say") {
  const Tensor logits = log(tensor({0.1, 0.4, 0.0, 0.25, 0.25}));
  Generator generator(3);
  std::vector<double> counts(5);
  for (int i = 0; i < 20000; ++i) counts[static_cast<size_t>(choose_token(logits, {}, generator))] += 1.0 / 20000;
  const double want[] = {0.1, 0.4, 0.0, 0.25, 0.25};
  for (size_t i = 0; i < 5; ++i) CHECK(std::abs(counts[i] - want[i]) < 0.015);  // over four standard deviations
}

TEST_CASE("generate: bad prompts, options and models are refused") {
  Generator generator(2);
  const auto model = make(gpt(8), generator);
  const auto error = [&](const Ids& prompt, const SamplingOptions& sampling) {
    return refusal<Error>([&] { generate(*model, prompt, {5, sampling}, generator); });
  };
  CHECK(error({}, {}) == "generate: the prompt is empty (it takes at least one token to continue)");
  CHECK(error({3, 17}, {}) == "generate: the prompt has no token 17: ids are from 0 to 16");
  CHECK(error({-1}, {}).starts_with("generate: the prompt "));
  CHECK(error({1}, {.temperature = -1}) == "generate: temperature must be at least 0: got -1");
  CHECK(error({1}, {.temperature = std::nan("")}).starts_with("generate: temperature "));
  CHECK(error({1}, {.top_k = -1}) == "generate: top_k must be at least 0: got -1");
  CHECK(error({1}, {.top_p = 0}) == "generate: top_p must be above 0 and at most 1: got 0");
  CHECK(error({1}, {.top_p = 1.5}).starts_with("generate: top_p "));
  NoGradGuard no_grad;
  Tensor parameter = model->parameters()[0];
  fill_(parameter, std::nan(""));
  CHECK_THROWS_AS(generate(*model, Ids{1}, {5}, generator), DivergedError);
}

TEST_CASE("generate: a text that ends leaves the others as they are") {
  Generator generator(1), a(4), b(5), alone(5);
  const auto model = make(gpt(24), generator);
  const Ids first = {1, 2}, second = {3};
  std::vector<int64_t> asked;
  const auto ends = [&](int64_t token) { return asked.push_back(token), asked.size() == 6; };
  const Prompt prompts[] = {{.ids = first, .generator = &a, .ends = ends}, {.ids = second, .generator = &b}};
  const std::vector<Generated> results = generate(*model, prompts, {.tokens = 20});
  CHECK(results[0].ended);
  CHECK(results[0].ids == asked);
  CHECK(asked.size() == 6);
  CHECK_FALSE(results[1].ended);
  CHECK(results[1].ids == generate(*model, second, {.tokens = 20}, alone).ids);
}

TEST_CASE("generate: a text continues from what the model remembers as from its beginning") {
  for (const Named& named : models(24)) {
    CAPTURE(named.name);
    Generator generator(1);
    const auto model = make(named.config, generator);
    TextMemory memory;
    Ids text = {5, 1, 2};
    for (int64_t turn = 0; turn < 4; ++turn) {  // the third begins inside the context and ends outside
      Generator with(turn), without(turn);
      const Prompt prompt{.ids = text, .generator = &with, .memory = &memory};
      const Generated remembered = generate(*model, std::span(&prompt, 1), {.tokens = 6})[0];
      const Generated read = generate(*model, text, {.tokens = 6}, without);
      CHECK(remembered.ids == read.ids);
      CHECK(remembered.logprobs == read.logprobs);
      text.insert(text.end(), read.ids.begin(), read.ids.end());
      CHECK(memory.read == std::ssize(text) - 1);
      text.insert(text.end(), {7, turn});
    }
  }
}

TEST_CASE("generate: a memory of a text that is no longer than it is not gone on from") {
  Generator generator(1), a(1), b(1);
  const auto model = make(gpt(24), generator);
  const Ids text = {5, 1, 2};
  TextMemory memory{.cache = {}, .read = 3};
  const Prompt prompt{.ids = text, .generator = &a, .memory = &memory};
  CHECK(generate(*model, std::span(&prompt, 1), {.tokens = 3})[0].ids == generate(*model, text, {.tokens = 3}, b).ids);
}

TEST_CASE("generate: alternatives are the most likely tokens of each place") {
  Generator generator(2), draws(3);
  const auto model = make(gpt(24), generator);
  Ids text = {4, 9};
  const Generated result = generate(*model, text, {.tokens = 5, .alternatives = 3}, draws);
  REQUIRE(result.alternatives.size() == 5);
  for (size_t i = 0; i < 5; ++i) {
    const Tensor logprobs = log_softmax(model->forward(from_values(text, {1, std::ssize(text)})).detach()[0][-1], -1);
    const auto order = argsort(logprobs, 0, /*descending=*/true).to_vector<int64_t>();
    REQUIRE(result.alternatives[i].size() == 3);
    for (size_t k = 0; k < 3; ++k) {
      CHECK(result.alternatives[i][k].id == order[k]);
      CHECK(result.alternatives[i][k].logprob == logprobs[order[k]].item());
    }
    text.push_back(result.ids[i]);
  }
  CHECK(generate(*model, Ids{1}, {.tokens = 1, .alternatives = 99}, draws).alternatives[0].size() == kVocab);
  CHECK(generate(*model, Ids{1}, {.tokens = 1}, draws).alternatives.empty());
}

TEST_CASE("generate: a penalty of repetition counts the prompt and what was generated") {
  Generator generator(2);
  const auto model = make(gpt(24), generator);
  Ids text = {4, 9};
  const SamplingOptions sampling{.temperature = 0, .repetition_penalty = 1.5};
  const Generated result = generate(*model, text, {12, sampling}, generator);
  for (const int64_t id : result.ids) {
    const Tensor logits = model->forward(from_values(text, {1, std::ssize(text)})).detach()[0][-1];
    CHECK(id == argmax(penalize_repetition(logits, text, 1.5)).item<int64_t>());
    text.push_back(id);
  }
  CHECK(result.ids != generate(*model, Ids{4, 9}, {12, {.temperature = 0}}, generator).ids);
}
