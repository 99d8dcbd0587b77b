#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>

#include "train/commands/commands.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace onestep::train::commands {
namespace {

struct Options {
  std::string config, out;
  std::vector<std::string> sets;
  bool quiet = false;
};

/// The most memory this process had in use, in MiB.
double peak_memory_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

std::string percent(double share) { return grouped(100 * share, 2) + " %"; }

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::trunc);
  out << text;
  check<IoError>(out.flush().good(), path.string(), ": cannot be written");
}

/// Makes the run folder new: its config and vocabulary are written, the results of an earlier run of that name removed.
void prepare_folder(const std::filesystem::path& run, const Trainer& trainer) {
  std::error_code error;
  std::filesystem::create_directories(run, error);
  check<IoError>(!error, run.string(), ": cannot be made: ", error.message());
  std::filesystem::remove_all(run / "checkpoints", error);
  write_text(run / "config.json", resolved_json(trainer.config()));
  std::filesystem::remove(run / "tokenizer.json", error);
  if (const Tokenizer* tokenizer = trainer.data().tokenizer()) write_text(run / "tokenizer.json", tokenizer->to_json());
}

void print_summary(const Trainer& trainer, const StepMetrics& last, const Evaluation& evaluation, double tokens_per_second,
                   const std::filesystem::path& run) {
  std::cout << "steps        " << grouped(static_cast<double>(trainer.steps_done())) << " in " << grouped(last.seconds, 1)
            << " s\n"
            << "train loss   " << grouped(last.loss, 4) << '\n'
            << "val loss     " << grouped(evaluation.loss, 4) << '\n'
            << "val accuracy " << percent(evaluation.accuracy) << " of " << grouped(static_cast<double>(evaluation.tokens))
            << " predictions on " << trainer.data().evaluates_on() << '\n';
  if (const auto entropy = trainer.data().bigram_entropy())
    std::cout << "bigrams      " << grouped(*entropy, 4) << " nats a token (entropy of the data)\n";
  std::cout << "speed        " << grouped(tokens_per_second) << " tokens/s\n"
            << "peak memory  " << grouped(peak_memory_mib()) << " MiB\n"
            << "run folder   " << run.string() << '\n';
}

int run_training(const Options& options) {
  const Config config = load_config(options.config, options.sets);
  Trainer trainer(config);
  const std::filesystem::path run =
      options.out.empty() ? default_run_folder(options.config) : std::filesystem::path(options.out);
  prepare_folder(run, trainer);
  MetricsFile file((run / "metrics.jsonl").string());
  const TrainConfig& plan = config.train;
  if (!options.quiet)
    std::cerr << trainer.data().describe() << "\ntraining " << grouped(static_cast<double>(trainer.model().num_parameters()))
              << " parameters for " << grouped(static_cast<double>(plan.steps)) << " steps of "
              << grouped(static_cast<double>(trainer.tokens_per_step())) << " tokens\n";

  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Progress progress(plan.steps, options.quiet);
  StepMetrics metrics;
  Evaluation evaluation;
  double training_seconds = 0;  // without evaluation and saving
  const auto start = Clock::now();
  for (int64_t step = 0; step < plan.steps; ++step) {
    const auto step_start = Clock::now();
    metrics = trainer.step();
    const double step_seconds = seconds_since(step_start);
    training_seconds += step_seconds;
    metrics.tokens_per_second = static_cast<double>(trainer.tokens_per_step()) / step_seconds;
    const bool last = step + 1 == plan.steps;
    if (last || (plan.eval_every > 0 && (step + 1) % plan.eval_every == 0)) {
      evaluation = trainer.evaluate();
      metrics.val_loss = evaluation.loss;
      metrics.val_accuracy = evaluation.accuracy;
    }
    metrics.seconds = seconds_since(start);
    if (last || metrics.val_loss || step % plan.log_every == 0) {
      file.write(metrics);
      progress.show(metrics);
    }
    if (last || (plan.checkpoint_every > 0 && (step + 1) % plan.checkpoint_every == 0))
      save_checkpoint(run, step + 1, trainer.model(), plan.keep_checkpoints);
  }
  progress.finish();
  const double tokens = static_cast<double>(trainer.tokens_per_step() * plan.steps);
  print_summary(trainer, metrics, evaluation, tokens / training_seconds, run);
  return 0;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("train", "Train a model as a config file says");
  command->add_option("CONFIG", options->config, "The config file")->required();
  command->add_option("--set", options->sets, "Override a config value: --set optimizer.lr=0.01 (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--out", options->out, "Run folder (default: runs/<config name>)")->type_name("RUN");
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->footer(config_help());
  command->callback([options, &action] { action = [options] { return run_training(*options); }; });
}

}  // namespace onestep::train::commands
