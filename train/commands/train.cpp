#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "train/commands/commands.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace onestep::train::commands {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string config, out;
  std::vector<std::string> sets;
  bool quiet = false;
};

constexpr int kDiverged = 1, kInterrupted = 130;

volatile std::sig_atomic_t interrupted = 0;

/// The first SIGINT or SIGTERM finishes the step and saves; a second one ends the program at once.
void on_signal(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// The most memory this process had in use, in MiB.
double peak_memory_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

std::string count(int64_t n) { return grouped(static_cast<double>(n)); }

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::trunc);
  out << text;
  check<IoError>(out.flush().good(), path.string(), ": cannot be written");
}

bool is_run(const fs::path& folder) { return fs::is_regular_file(folder / "config.json"); }

/// Moves an earlier run of that name to NAME.previous (the one before it goes). Refuses to touch what is not a run.
void set_aside(const fs::path& run) {
  const fs::path previous = run.string() + ".previous";
  std::error_code error;
  if (!fs::exists(run) || (fs::is_directory(run) && fs::is_empty(run, error))) return;
  check<IoError>(is_run(run), run.string(), ": is there already and not the folder of a run (name another with --out)");
  check<IoError>(!fs::exists(previous) || is_run(previous), previous.string(), ": is not the folder of a run, so the earlier ",
                 run.string(), " cannot be kept there (move one of them away)");
  fs::remove_all(previous, error);
  fs::rename(run, previous, error);
  check<IoError>(!error, run.string(), ": the earlier run cannot be moved to ", previous.string(), ": ", error.message());
}

/// Makes the run folder new, with its config and vocabulary; an earlier run of that name is set aside.
void prepare_folder(const fs::path& run, const Trainer& trainer) {
  set_aside(run);
  std::error_code error;
  fs::create_directories(run, error);
  check<IoError>(!error, run.string(), ": cannot be made: ", error.message());
  write_text(run / "config.json", resolved_json(trainer.config()));
  if (const Tokenizer* tokenizer = trainer.data().tokenizer()) write_text(run / "tokenizer.json", tokenizer->to_json());
}

struct Outcome {
  StepMetrics last;
  Evaluation evaluation;
  double step_seconds = 0;  ///< Spent in training steps, without evaluation and saving.
};

/// Trains to the last step or the first signal, which both are evaluated and saved.
Outcome train_steps(Trainer& trainer, const fs::path& run, bool quiet) {
  const TrainConfig& plan = trainer.config().train;
  MetricsFile file((run / "metrics.jsonl").string());
  Progress progress(plan.steps, quiet);
  Outcome outcome;
  const Stopwatch total;
  for (bool last = false; !last;) {
    const Stopwatch watch;
    StepMetrics metrics = trainer.step();
    const double seconds = watch.seconds();
    outcome.step_seconds += seconds;
    metrics.tokens_per_second = static_cast<double>(trainer.tokens_per_step()) / seconds;
    const int64_t done = trainer.steps_done();
    last = done == plan.steps || interrupted != 0;
    if (last || (plan.eval_every > 0 && done % plan.eval_every == 0)) {
      outcome.evaluation = trainer.evaluate();
      check<DivergedError>(std::isfinite(outcome.evaluation.loss), "train: diverged at step ", metrics.step,
                           ": validation loss ", outcome.evaluation.loss, " (lower optimizer.lr, or set train.grad_clip)");
      metrics.val_loss = outcome.evaluation.loss;
      metrics.val_accuracy = outcome.evaluation.accuracy;
    }
    metrics.seconds = total.seconds();
    if (last || metrics.val_loss || metrics.step % plan.log_every == 0) {
      file.write(metrics);
      progress.show(metrics);
    }
    if (last || (plan.checkpoint_every > 0 && done % plan.checkpoint_every == 0))
      save_checkpoint(run, done, trainer.model(), plan.keep_checkpoints);
    outcome.last = metrics;
  }
  progress.finish();
  return outcome;
}

void print_summary(const Trainer& trainer, const Outcome& outcome, const fs::path& run) {
  const auto tokens = static_cast<double>(trainer.tokens_per_step() * trainer.steps_done());
  std::cout << "steps        " << count(trainer.steps_done()) << " in " << grouped(outcome.last.seconds, 1) << " s\n"
            << "train loss   " << grouped(outcome.last.loss, 4) << '\n'
            << "val loss     " << grouped(outcome.evaluation.loss, 4) << '\n'
            << "val accuracy " << grouped(100 * outcome.evaluation.accuracy, 2) << " % of " << count(outcome.evaluation.tokens)
            << " predictions on " << trainer.data().evaluates_on() << '\n';
  if (const auto entropy = trainer.data().bigram_entropy())
    std::cout << "bigrams      " << grouped(*entropy, 4) << " nats a token (the best loss that looks back one token only)\n";
  std::cout << "speed        " << grouped(tokens / outcome.step_seconds) << " tokens/s\n"
            << "peak memory  " << grouped(peak_memory_mib()) << " MiB\n"
            << "run folder   " << run.string() << '\n';
}

int run_training(const Options& options) {
  Trainer trainer(load_config(options.config, options.sets));
  fs::path run = options.out.empty() ? default_run_folder(options.config) : fs::path(options.out).lexically_normal();
  if (run.filename().empty()) run = run.parent_path();  // `--out runs/x/`
  prepare_folder(run, trainer);
  if (!options.quiet)
    std::cerr << trainer.data().describe() << "\ntraining " << count(trainer.model().num_parameters()) << " parameters for "
              << count(trainer.config().train.steps) << " steps of " << count(trainer.tokens_per_step()) << " tokens\n";
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  try {
    const Outcome outcome = train_steps(trainer, run, options.quiet);
    print_summary(trainer, outcome, run);
  } catch (const DivergedError& error) {
    std::cerr << "onestep: " << error.what() << '\n';
    return kDiverged;
  }
  return interrupted != 0 ? kInterrupted : 0;
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
