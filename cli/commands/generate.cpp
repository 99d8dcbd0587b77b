#include "train/models/generate.h"

#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/continuations.h"
#include "cli/commands/prompts.h"
#include "train/data/data.h"

namespace onestep::cli {
namespace {

struct Options {
  std::string run, checkpoint = "last", format = "text", weights = "float32", prompt_file, stop_ids;
  std::vector<std::string> prompts, prompt_ids;
  bool no_cache = false, json_lines = false, ignore_eos = false;
  int64_t samples = 1;
  ContinuationOptions continuations = {};
};

constexpr int64_t kTokens = 100;  // unless --tokens says otherwise

/// A prompt of the task that training never sees. What the answer is goes to stderr.
std::vector<int64_t> held_out_prompt(const Data& task, const Options& options) {
  Generator generator(options.continuations.seed);
  const Batch batch = task.eval_batch(1, generator);
  if (!options.continuations.quiet) {
    std::cerr << "a held-out prompt; the right answer is";
    for (const int64_t id : std::span(batch.targets).last(static_cast<size_t>(task.targets())))
      std::cerr << ' ' << task.token_name(id);
    std::cerr << std::endl;
  }
  return {batch.inputs.begin(), batch.inputs.end() - (task.targets() - 1)};
}

std::vector<std::vector<int64_t>> prompts_of(const Options& options, const LoadedRun& run, const Data* task) {
  if (!options.prompt_file.empty()) return read_prompts(options.prompt_file, run);
  std::vector<std::vector<int64_t>> prompts;
  for (const std::string& ids : options.prompt_ids) prompts.push_back(parse_id_list(ids, "--prompt-ids", run));
  for (const std::string& prompt : options.prompts) {
    prompts.push_back(run.encode(prompt, "--prompt"));
    ONESTEP_CHECK(ConfigError, !prompts.back().empty(), "--prompt: is empty");
  }
  if (prompts.empty() && task != nullptr) prompts.push_back(held_out_prompt(*task, options));
  ONESTEP_CHECK(ConfigError, !prompts.empty(), "generate: needs one of --prompt, --prompts and --prompt-ids");
  return prompts;
}

/// What the options say together.
void settle(Options& options) {
  ContinuationOptions& out = options.continuations;
  check_sampling(out.generate.sampling);
  out.generate.cache = !options.no_cache;
  out.output = options.json_lines ? Output::json_lines : options.format == "json" ? Output::json : Output::text;
  ONESTEP_CHECK(ConfigError, out.generate.alternatives == 0 || out.output != Output::text,
                "--logprobs: needs --json or --format json");
}

int run_generate(Options& options) {
  settle(options);
  const std::unique_ptr<LoadedRun> run = load_run(options.run, options.checkpoint, options.weights);
  const std::unique_ptr<Data> task = run->config.data.kind == DataKind::task ? make_data(run->config) : nullptr;
  stop_at_ids(*run, options.stop_ids, options.continuations.stops);
  if (!options.ignore_eos) stop_at_eos(*run, options.continuations.stops);
  int64_t& tokens = options.continuations.generate.tokens;
  if (tokens == 0) tokens = task != nullptr ? task->targets() : kTokens;
  const std::vector<std::vector<int64_t>> prompts = prompts_of(options, *run, task.get());
  for (const auto& prompt : prompts) check_prompt(*run->model, prompt);  // before any of it is printed
  Continuations continuations(*run, prompts, options.continuations);
  try {
    for (int64_t i = 0; i < options.samples; ++i) continuations.print_sample();
  } catch (const DivergedError& error) {
    std::cerr << "onestep: " << options.run << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}

void add_prompt_options(Command& command, Options& options) {
  auto* prompt = command.add_repeatable_option(
      "--prompt", options.prompts,
      "The text to continue (default: a held-out prompt of a task); several are continued at once, each as "
      "it would be alone");
  prompt->type_name("TEXT");
  auto* ids = command.add_repeatable_option("--prompt-ids", options.prompt_ids, "The token ids to continue: 1,2,3; likewise");
  ids->type_name("IDS")->excludes(prompt);
  command
      .add_option("--prompts", options.prompt_file,
                  "A file with a text to continue on each line (- for standard input); of a .jsonl file a JSON string a line")
      ->type_name("FILE")
      ->excludes(prompt)
      ->excludes(ids);
  command.add_whole_number("--batch", options.continuations.batch, "Prompts that are continued at a time", 1, 1 << 16);
}

void add_output_options(Command& command, Options& options) {
  auto* format = command.add_option("--format", options.format,
                                    "text (the prompt and what follows, as it comes) or json (one line a continuation)");
  format->type_name("text|json")->check(one_of({"text", "json"}));
  command.add_flag("--json", options.json_lines, "Lines of JSON as they come: one a token, then one a continuation")
      ->excludes(format);
  command.add_whole_number("--logprobs", options.continuations.generate.alternatives,
                           "In JSON, for each token the N most likely ones", 0, int64_t{1} << 24);
  command.add_flag("--quiet", options.continuations.quiet, "No progress on stderr");
  command.footer(
      "The model attends to the last context_length tokens: once they are full the window slides by one token and is "
      "recomputed.\njson: {\"ids\": [...], \"text\": \"...\", \"logprobs\": [...], \"finish_reason\": \"length\"} of the "
      "generated tokens, or \"stop\";\nlogprobs are those of the model as it is, whatever the temperature.");
}

}  // namespace

void add_generate(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("generate", "Continue a text with a trained run");
  command->add_option("RUN", options->run, "The run folder")->required();
  add_prompt_options(*command, *options);
  ContinuationOptions& out = options->continuations;
  command->add_option("--tokens", out.generate.tokens, "Tokens to generate at most (default: 100; of a task its answer)")
      ->type_name("N")
      ->check(whole_number(1, int64_t{1} << 40));
  add_sampling_options(*command, out.generate.sampling, out.seed);
  command->add_repeatable_option("--stop", out.stops.strings, "End before this text")
      ->type_name("TEXT")
      ->check(not_empty("a text"));
  add_stop_ids(*command, options->stop_ids, "End at any of these tokens, beside the model's own: 1,2,3");
  add_ignore_eos(*command, options->ignore_eos);
  command->add_whole_number("--samples", options->samples, "How many continuations, one after the other", 1, int64_t{1} << 40);
  command->add_checkpoint_option(options->checkpoint);
  command->add_weights_option(options->weights);
  command->add_flag("--no-cache", options->no_cache,
                    "Recompute the whole context for every token, without a KV cache: slower, the same result");
  add_output_options(*command, *options);
  command->callback([options, &action] { action = [options] { return run_generate(*options); }; });
}

}  // namespace onestep::cli
