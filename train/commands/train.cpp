#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/profiler.h"
#include "train/commands/commands.h"
#include "train/files.h"
#include "train/machine.h"
#include "train/report.h"
#include "train/run_folder.h"
#include "train/run_loop.h"
#include "train/trainer.h"
#include "train/utf8.h"

namespace onestep::train::commands {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string config, out, resume;
  std::vector<std::string> sets;
  bool quiet = false, profile = false;
};

constexpr int kDiverged = 1, kInterrupted = 130;

volatile std::sig_atomic_t interrupted = 0;

/// The first SIGINT or SIGTERM finishes the step and saves; a second one ends the program at once.
void on_signal(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

std::string count(int64_t n) { return grouped(static_cast<double>(n)); }

void print_summary(const Trainer& trainer, const Outcome& outcome, const fs::path& run) {
  std::cout << "steps        " << count(trainer.steps_done()) << " in " << grouped(outcome.last->seconds, 1) << " s\n"
            << "train loss   " << grouped(outcome.last->loss, 4) << '\n';
  if (const auto& evaluation = outcome.evaluation)
    std::cout << "val loss     " << grouped(evaluation->loss, 4) << '\n'
              << "val accuracy " << grouped(100 * evaluation->accuracy, 2) << " % of " << count(evaluation->tokens)
              << " predictions on " << trainer.data().evaluates_on() << '\n';
  if (outcome.stopped_early)
    std::cout << "stopped      early: no better val loss in " << count(trainer.config().train.early_stop_patience)
              << " evaluations (the best checkpoint is kept: eval --checkpoint best)\n";
  if (const auto entropy = trainer.data().bigram_entropy())
    std::cout << "bigrams      " << grouped(*entropy, 4) << " nats a token (the best loss that looks back one token only)\n";
  if (outcome.steps > 0)
    std::cout << "speed        "
              << grouped(static_cast<double>(trainer.tokens_per_step() * outcome.steps) / outcome.step_seconds)
              << " tokens/s\n";
  std::cout << "peak memory  " << grouped(peak_memory_mib()) << " MiB\n"
            << "run folder   " << run.string() << '\n';
}

/// What the metrics do not say, for the report: summary.json.
void write_summary(Trainer& trainer, const fs::path& run) {
  write_file(run / "summary.json", nlohmann::ordered_json{{"parameters", count(trainer.model().num_parameters())},
                                                          {"peak memory", grouped(peak_memory_mib()) + " MiB"},
                                                          {"machine", describe_machine()},
                                                          {"version", "onestep " ONESTEP_VERSION}}
                                           .dump(2) +
                                       "\n");
}

/// Trains from where `trainer` and `state` stand.
int train_run(Trainer& trainer, const fs::path& run, RunState state, const Options& options) {
  if (!options.quiet)
    std::cerr << trainer.data().describe() << "\ntraining " << count(trainer.model().num_parameters()) << " parameters for "
              << count(trainer.config().train.steps - trainer.steps_done()) << " steps of " << count(trainer.tokens_per_step())
              << " tokens\n";
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::optional<Profiler> profiler;
  if (options.profile) profiler.emplace();
  try {
    const Outcome outcome = run_steps(
        trainer, run, std::move(state), [] { return interrupted != 0; }, options.quiet);
    const std::string profile = profiler ? '\n' + profile_table(profiler->entries()) : "";
    write_summary(trainer, run);
    write_file(run / "report.html", report_html({read_report_run(run, &trainer)}));
    print_summary(trainer, outcome, run);
    std::cout << profile;
    return outcome.interrupted ? kInterrupted : 0;
  } catch (const DivergedError& error) {
    std::cerr << "onestep: " << error.what() << '\n';
    return kDiverged;
  }
}

/// The trainer of a new run, which starts from random parameters or from those of the run train.init_from.
std::unique_ptr<Trainer> make_trainer(const Config& config, bool quiet) {
  check<ConfigError>(config.data.kind != "none", config.origin.at("/data/kind"),
                     ": none: there is nothing to train on (give --set data.kind=text --set data.path=FILE)");
  if (config.train.init_from.empty()) return std::make_unique<Trainer>(config, nullptr, quiet);
  const fs::path from = run_path(config.train.init_from);
  const FoundCheckpoint found = find_checkpoint(from, "last");
  const auto tokenizer = config.data.kind == "text" ? load_run_tokenizer(from) : nullptr;
  check<ConfigError>(tokenizer == nullptr || tokenizer->kind() == config.data.tokenizer, config.origin.at("/data/tokenizer"),
                     ": must be ", tokenizer == nullptr ? "" : tokenizer->kind(), ", that of ", from.string(), ": got ",
                     config.data.tokenizer);
  auto trainer = std::make_unique<Trainer>(config, tokenizer, quiet);
  load_model(trainer->model(), found);
  return trainer;
}

int start_run(const Options& options) {
  const std::unique_ptr<Trainer> made = make_trainer(load_config(options.config, options.sets), options.quiet);
  Trainer& trainer = *made;
  const fs::path run = options.out.empty() ? default_run_folder(options.config) : run_path(options.out);
  const RunLock lock = create_run(run, trainer.config(), trainer.data().tokenizer());
  return train_run(trainer, run, {}, options);
}

/// Takes the newest whole checkpoint; says which, and which newer ones are of no use.
RunState load_newest(Trainer& trainer, const fs::path& run, bool quiet) {
  const std::optional<FoundCheckpoint> found = newest_checkpoint(run);
  if (!found) {
    if (!quiet) std::cerr << run.string() << ": holds no checkpoint yet: starting from the first step\n";
    return {};
  }
  try {
    trainer.load_state(found->checkpoint.trainer);
  } catch (const Error& error) {
    throw IoError(found->folder.string() + ": cannot be resumed: " + error.what());
  }
  for (const auto& [folder, reason] : found->damaged) {
    set_checkpoint_aside(folder);
    std::cerr << "onestep: " << escaped(reason) << " (kept as " << folder.filename().string() << ".damaged)\n";
  }
  if (!quiet || !found->damaged.empty()) std::cerr << "resuming from " << found->folder.string() << '\n';
  return found->checkpoint.run;
}

int resume_run(const Options& options) {
  const fs::path run = run_path(options.resume);
  const RunLock lock(run);
  Trainer trainer(load_run_config(run, options.sets), load_run_tokenizer(run), options.quiet);
  const RunState state = load_newest(trainer, run, options.quiet);
  const int64_t steps = trainer.config().train.steps, done = trainer.steps_done();
  check<ConfigError>(done <= steps, trainer.config().origin.at("/train/steps"), ": must be at least ", done,
                     ", the steps already done: got ", steps);
  write_run_config(run, trainer.config(), trainer.data().tokenizer());
  if (done == steps && !state.unfinished) {
    std::cerr << run.string() << ": all " << count(steps) << " steps are done (train further with --set train.steps=N)\n";
    return 0;
  }
  if (stops_early(trainer.config().train, done, state)) {
    std::cerr << run.string() << ": was stopped early after " << count(done)
              << " steps (train further with --set train.early_stop_patience=0)\n";
    return 0;
  }
  return train_run(trainer, run, state, options);
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("train", "Train a model as a config file says");
  auto* config = command->add_option("CONFIG", options->config, "The config file of a new run");
  add_set_option(*command, options->sets, "optimizer.lr=0.01");
  auto* out = command->add_option("--out", options->out, "Run folder (default: runs/<config name>)")->type_name("RUN");
  auto* resume =
      command
          ->add_option(
              "--resume", options->resume,
              "Go on with an interrupted or finished run, with its own config; --set may change what docs/config.md says "
              "may change")
          ->type_name("RUN")
          ->excludes(config)
          ->excludes(out);
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->add_flag("--profile", options->profile, "At the end, what each op took: time, share, GFLOP/s, bytes a second");
  command->footer(config_help());
  command->callback([options, config, resume, &action] {
    check<ConfigError>(*config || *resume, "train: needs a CONFIG, or --resume RUN (see onestep train --help)");
    action = [options, resumes = bool(*resume)] { return resumes ? resume_run(*options) : start_run(*options); };
  });
}

}  // namespace onestep::train::commands
