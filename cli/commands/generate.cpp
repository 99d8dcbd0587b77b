#include "train/models/generate.h"

#include <unistd.h>

#include <charconv>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/progress_bar.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"
#include "train/run_folder.h"
#include "train/runs/trained_run.h"
#include "train/text/stream_decoder.h"
#include "train/trainer.h"

namespace onestep::cli {
namespace {

struct Options {
  std::string run, checkpoint = "last", format = "text", weights = "float32";
  std::vector<std::string> prompts, prompt_ids;
  bool no_cache = false, quiet = false;
  int64_t seed = 0, samples = 1;
  GenerateOptions generate;
};

/// A trained run: its model, and its tokenizer unless it was trained on ids.
struct LoadedRun {
  Generator generator;  // of the initial values, which are then overwritten, and of dropout, which is off
  std::unique_ptr<LanguageModel> model;
  std::shared_ptr<const Tokenizer> tokenizer;
};

std::unique_ptr<LoadedRun> load_run(const std::string& name, const std::string& which, WeightFormat weights) {
  auto loaded = std::make_unique<LoadedRun>();
  const std::filesystem::path run = run_path(name);
  const Config config = load_run_config(run);
  const FoundCheckpoint found = choose_checkpoint(run, config, which);
  loaded->tokenizer = load_run_tokenizer(run);
  loaded->model = make_trained_model(config, trained_vocabulary(found), found, loaded->generator, weights);
  return loaded;
}

/// `1,2,3`
std::vector<int64_t> parse_ids(const std::string& list) {
  std::vector<int64_t> ids;
  for (const char *at = list.data(), *end = at + list.size(); at <= end;) {
    int64_t id = 0;
    const auto [behind, error] = std::from_chars(at, end, id);
    ONESTEP_CHECK(ConfigError, error == std::errc() && (behind == end || *behind == ','),
                  "--prompt-ids: must be ids with commas: got ", quote(list));
    ids.push_back(id);
    at = behind + 1;
  }
  return ids;
}

std::vector<int64_t> encoded(const std::string& prompt, const Options& options, const LoadedRun& run) {
  ONESTEP_CHECK(ConfigError, run.tokenizer != nullptr, "--prompt: ", options.run,
                " was trained on ids and has no tokenizer (use --prompt-ids)");
  try {
    return run.tokenizer->encode_prompt(prompt);
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("--prompt: ") + error.what());
  }
}

std::vector<std::vector<int64_t>> prompts_of(const Options& options, const LoadedRun& run) {
  std::vector<std::vector<int64_t>> prompts;
  for (const std::string& ids : options.prompt_ids) prompts.push_back(parse_ids(ids));
  for (const std::string& prompt : options.prompts) prompts.push_back(encoded(prompt, options, run));
  ONESTEP_CHECK(ConfigError, !prompts.empty(), "generate: needs either --prompt or --prompt-ids");
  return prompts;
}

/// The ids without those that the tokenizer puts before every prompt.
std::span<const int64_t> without_prefix(const LoadedRun& run, std::span<const int64_t> ids) {
  const std::vector<int64_t> prefix = run.tokenizer ? run.tokenizer->prompt_prefix() : std::vector<int64_t>{};
  const bool prefixed = ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
  return prefixed ? ids.subspan(prefix.size()) : ids;
}

/// The text of the ids that follow `before`, if there are some.
std::string text_of(const LoadedRun& run, std::span<const int64_t> before, std::span<const int64_t> ids) {
  TokenText text(run.tokenizer.get());
  for (const int64_t id : before) text.add(id);
  std::string all;
  for (const int64_t id : ids) all += text.add(id);
  return all + text.finish();
}

/// A prompt and its continuation as a line of JSON.
std::string json_line(const LoadedRun& run, const std::vector<int64_t>& prompt, const Generated& result) {
  nlohmann::ordered_json line = {{"ids", result.ids}, {"text", nullptr}, {"logprobs", result.logprobs}};
  if (run.tokenizer) line["text"] = text_of(run, std::span(prompt).last(1), result.ids);
  return line.dump();
}

/// One continuation of each prompt, in their order. A single one is shown as it comes.
class Printer {
 public:
  Printer(LoadedRun& run, const std::vector<std::vector<int64_t>>& prompts, const Options& options)
      : run_(run), prompts_(prompts), options_(options), as_it_comes_(options.format == "text" && prompts.size() == 1) {
    for (const auto& prompt : prompts) {
      generators_.push_back(std::make_unique<Generator>(options.seed));
      drawn_.push_back({prompt, generators_.back().get()});
    }
  }

  void print_sample() {
    if (as_it_comes_) return print_as_it_comes();
    const std::vector<Generated> results = generate_shown(false, [](int64_t) {});
    for (size_t i = 0; i < results.size(); ++i) {
      if (options_.format == "json") {
        std::cout << json_line(run_, prompts_[i], results[i]) << std::endl;
        continue;
      }
      separate();
      std::vector<int64_t> all = prompts_[i];
      all.insert(all.end(), results[i].ids.begin(), results[i].ids.end());
      std::cout << text_of(run_, {}, without_prefix(run_, all)) << std::endl;
    }
  }

 private:
  void print_as_it_comes() {
    separate();
    TokenText text(run_.tokenizer.get());
    for (const int64_t id : without_prefix(run_, prompts_[0])) std::cout << text.add(id);
    std::cout << std::flush;
    generate_shown(::isatty(STDOUT_FILENO) == 1, [&](int64_t id) { std::cout << text.add(id) << std::flush; });
    std::cout << text.finish() << '\n';
  }

  /// generate() with progress on stderr, unless `on_token` lets the user see it.
  std::vector<Generated> generate_shown(bool visible, const std::function<void(int64_t)>& on_token) {
    const int64_t all = options_.generate.tokens * std::ssize(prompts_);
    LongWork progress("generating", all, "tokens", options_.quiet || visible);
    int64_t done = 0;
    return generate(*run_.model, drawn_, options_.generate, [&](size_t, int64_t id) {
      on_token(id);
      progress.show(++done);
    });
  }

  void separate() {
    if (printed_) std::cout << "---------------\n";
    printed_ = true;
  }

  LoadedRun& run_;
  const std::vector<std::vector<int64_t>>& prompts_;
  const Options& options_;
  bool as_it_comes_, printed_ = false;
  std::vector<std::unique_ptr<Generator>> generators_;  // of each prompt: it gets what it would get alone
  std::vector<Prompt> drawn_;
};

int run_generate(Options& options) {
  check_sampling(options.generate.sampling);
  options.generate.cache = !options.no_cache;
  const std::unique_ptr<LoadedRun> run = load_run(options.run, options.checkpoint, *value_named<WeightFormat>(options.weights));
  const std::vector<std::vector<int64_t>> prompts = prompts_of(options, *run);
  for (const auto& prompt : prompts) check_prompt(*run->model, prompt);  // before any of it is printed
  Printer printer(*run, prompts, options);
  try {
    for (int64_t i = 0; i < options.samples; ++i) printer.print_sample();
  } catch (const DivergedError& error) {
    std::cerr << "onestep: " << options.run << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}

}  // namespace

void add_generate(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("generate", "Continue a text with a trained run");
  SamplingOptions& sampling = options->generate.sampling;
  const auto number = [&](const std::string& name, auto& value, const std::string& doc) {
    return command->add_option(name, value, doc)->type_name("N");
  };
  command->add_option("RUN", options->run, "The run folder")->required();
  auto* prompt = command->add_repeatable_option("--prompt", options->prompts,
                                                "The text to continue; this or --prompt-ids is needed. Given several times, "
                                                "all are continued at once, each as it would be alone");
  prompt->type_name("TEXT");
  command->add_repeatable_option("--prompt-ids", options->prompt_ids, "The token ids to continue: 1,2,3; likewise")
      ->type_name("IDS")
      ->excludes(prompt);
  number("--tokens", options->generate.tokens, "Tokens to generate")->required()->check(whole_number(1, int64_t{1} << 40));
  number("--temperature", sampling.temperature, "Logits are divided by it; 0 takes the most likely token (default: 1)")
      ->check(at_least_0());
  number("--top-k", sampling.top_k, "Only the N most likely tokens (default: all)")->check(whole_number(0, INT64_MAX));
  number("--top-p", sampling.top_p, "Only the most likely tokens whose probabilities add up to N (default: 1)")
      ->check(decimal_number("above 0 and at most 1", [](double p) { return p > 0 && p <= 1; }));
  number("--seed", options->seed, "Seed of the draws (default: 0)")->check(whole_number(INT64_MIN, INT64_MAX));
  number("--samples", options->samples, "How many continuations, one after the other (default: 1)")
      ->check(whole_number(1, int64_t{1} << 40));
  command->add_checkpoint_option(options->checkpoint);
  command->add_weights_option(options->weights);
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->add_flag("--no-cache", options->no_cache,
                    "Recompute the whole context for every token, without a KV cache: slower, the same result");
  command
      ->add_option("--format", options->format, "text (the prompt and what follows, as it comes) or json (one line a sample)")
      ->type_name("NAME")
      ->check(one_of({"text", "json"}));
  command->footer(
      "The model attends to the last context_length tokens: once they are full the window slides by one token and is "
      "recomputed.\njson: {\"ids\": [...], \"text\": \"...\", \"logprobs\": [...]} of the generated tokens; logprobs are those "
      "of "
      "the model\nas it is, whatever the temperature.");
  command->callback([options, &action] { action = [options] { return run_generate(*options); }; });
}

}  // namespace onestep::cli
