#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/kernels/isa.h"
#include "autograd/kernels/parallel.h"
#include "autograd/memory.h"
#include "autograd/profiler.h"
#include "base/format.h"
#include "base/machine.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "base/write_file.h"
#include "cli/commands/commands.h"
#include "cli/commands/init_from.h"
#include "cli/commands/stop_signals.h"
#include "optim/schedule.h"
#include "train/config/config_fields.h"
#include "train/data/text_source.h"
#include "train/distributed/mpi/ranks.h"
#include "train/report/report.h"
#include "train/run_folder.h"
#include "train/run_loop.h"
#include "train/trainer.h"

namespace onestep::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string config, out, resume;
  std::vector<std::string> sets;
  bool quiet = false, profile = false;
};

constexpr int kDiverged = 1, kInterrupted = 130;

std::string count(int64_t n) { return grouped(static_cast<double>(n)); }

/// Peak memory of a rank, and of its tensors alone, in MiB.
struct Peak {
  double all, tensors;
};

void print_peaks(const std::vector<Peak>& peaks) {
  std::cout << "peak memory  ";
  for (size_t r = 0; r < peaks.size(); ++r) std::cout << (r == 0 ? "" : ", ") << grouped(peaks[r].all);
  std::cout << " MiB, tensors ";
  for (size_t r = 0; r < peaks.size(); ++r) std::cout << (r == 0 ? "" : ", ") << grouped(peaks[r].tensors, 2);
  std::cout << " MiB\n";
}

/// `2 threads each`, or `1, 2, 2 threads` by rank.
std::string describe_threads(const std::vector<std::vector<double>>& threads) {
  const std::string one = grouped(threads[0][0]);
  if (std::all_of(threads.begin(), threads.end(), [&](const auto& rank) { return rank == threads[0]; }))
    return one + (one == "1" ? " thread" : " threads") + " each";
  std::string all = one;
  for (size_t r = 1; r < threads.size(); ++r) all += ", " + grouped(threads[r][0]);
  return all + " threads";
}

void print_ranks(const DistributedConfig& config, const std::vector<std::vector<double>>& threads) {
  std::cerr << threads.size() << " ranks with " << describe_threads(threads) << " share a step";
  if (config.reduce == Reduce::allreduce)
    std::cerr << "; distributed.reduce is allreduce: another number of ranks gives other bits";
  std::cerr << '\n';
}

std::vector<Peak> gather_peaks(Communicator& ranks) {
  std::vector<Peak> peaks;
  const double tensors = static_cast<double>(memory::stats().peak_bytes) / 1048576.0;
  for (const auto& numbers : ranks.all_gather({peak_memory_mib(), tensors})) peaks.push_back({numbers[0], numbers[1]});
  return peaks;
}

void print_summary(const Trainer& trainer, const Outcome& outcome, const std::vector<Peak>& peaks, const fs::path& run) {
  std::cout << "steps        " << count(trainer.steps_done()) << " in " << grouped(outcome.last->seconds, 1) << " s\n"
            << "train loss   " << loss_text(outcome.last->loss) << " in the last step\n";
  if (const auto& evaluation = outcome.evaluation)
    std::cout << "val loss     " << loss_text(evaluation->loss) << '\n'
              << "val accuracy " << grouped(100 * evaluation->accuracy, 2) << " % of " << count(evaluation->tokens)
              << " predictions on " << evaluates_on(trainer.config().data) << '\n';
  if (outcome.interrupted)
    std::cout << "stopped      by a signal, after " << count(trainer.steps_done()) << " of "
              << count(trainer.config().train.steps) << " steps, and saved: go on with train --resume " << run.string() << '\n';
  if (outcome.stopped_early)
    std::cout << "stopped      early: no better val loss in " << count(trainer.config().train.early_stop_patience)
              << " evaluations (the best checkpoint is kept: eval --checkpoint best)\n";
  if (const auto loss = trainer.data().bigram_loss())
    std::cout << "bigrams      " << loss_text(*loss)
              << (trainer.config().data.val_fraction > 0 ? " val loss of a bigram model of the training tokens\n"
                                                         : " lowest training loss of a bigram model\n");
  if (outcome.steps > 0)
    std::cout << "speed        "
              << grouped(static_cast<double>(trainer.tokens_per_step() * outcome.steps) / outcome.step_seconds)
              << " tokens/s\n";
  if (outcome.steps > 0 && peaks.size() > 1)
    std::cout << "exchange     " << grouped(100 * outcome.traffic.seconds / outcome.step_seconds, 1) << " % of the time; "
              << count(outcome.traffic.bytes / outcome.steps) << " bytes a step sent by rank 0\n";
  print_peaks(peaks);
  std::cout << "run folder   " << run.string() << '\n';
}

/// `AMD EPYC 7763, avx2, 2 threads`: processor, instruction set and threads in use.
std::string describe_machine() {
  const int threads = kernels::num_threads();
  return processor_name() + ", " + std::string(kernels::name(kernels::active_isa())) + ", " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads");
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

/// All is saved already: a page that cannot be made or written is no failure of the run.
void write_page(Trainer& trainer, const RunLock& lock) {
  try {
    lock.naming_errors([&] {
      const fs::path run = lock.folder();
      write_summary(trainer, run);
      ReportRun page = read_report_run(run, trainer.config(), &trainer);
      page.name = lock.name().filename().string();
      write_file(run / "report.html", report_html({page}));
    });
  } catch (const std::exception& error) {
    std::cerr << "onestep: report: not written: " << escaped(error.what()) << '\n';
  }
}

/// Warns where all steps are warm-up, and where steps that the command line adds run at min_lr, after the end of the schedule.
void say_schedule(const Config& config) {
  const optim::ScheduleConfig& schedule = config.schedule;
  const int64_t steps = config.train.steps;
  if (steps <= schedule.warmup_steps)
    std::cerr << "all " << count(steps) << " steps are warm-up (schedule.warmup_steps = " << count(schedule.warmup_steps)
              << "): the learning rate rises to " << std::setprecision(3)
              << optim::learning_rate(schedule, config.optimizer.lr, steps - 1)
              << " of optimizer.lr = " << to_json(config.optimizer.lr) << '\n';
  const bool ends = holds(find_field("schedule.decay_steps")->when, config);
  if (ends && config.origin.sets.contains("/train/steps") && steps > schedule.decay_steps)
    std::cerr << "the schedule ends at step " << count(schedule.decay_steps)
              << " (schedule.decay_steps): the steps after it run at the learning rate " << to_json(schedule.min_lr)
              << " (schedule.min_lr)\n";
}

/// Trains from where `trainer` and `state` stand. The root has the lock and writes.
int train_run(Trainer& trainer, const RunLock* lock, RunState state, const Options& options) {
  Communicator& ranks = trainer.communicator();
  const bool quiet = options.quiet || !ranks.is_root();
  const auto threads = ranks.all_gather({static_cast<double>(kernels::num_threads())});
  const auto on_pipe = std::signal(SIGPIPE, SIG_IGN);  // where nobody reads the progress any more the run continues without it
  if (!quiet) {
    std::cerr << trainer.data().describe() << "\ntraining " << count(trainer.model().num_parameters()) << " parameters for "
              << count(trainer.config().train.steps - trainer.steps_done()) << " steps of " << count(trainer.tokens_per_step())
              << " tokens\n";
    say_schedule(trainer.config());
    if (ranks.size() > 1) print_ranks(trainer.config().distributed, threads);
  }
  catch_stop_signals(quiet);
  std::optional<Profiler> profiler;
  if (options.profile && ranks.is_root()) profiler.emplace();
  Outcome outcome;
  const auto run = [&](const fs::path& folder) { outcome = run_steps(trainer, folder, state, stop_signalled, quiet); };
  if (lock != nullptr) {
    lock->naming_errors([&] { run(lock->folder()); });
  } else {
    run({});
  }
  const std::string profile = profiler ? '\n' + profile_table(profiler->entries()) : "";
  const std::vector<Peak> peaks = gather_peaks(ranks);
  if (ranks.is_root()) {
    write_page(trainer, *lock);
    std::signal(SIGPIPE, on_pipe);  // all is saved
    print_summary(trainer, outcome, peaks, lock->name());
    std::cout << profile;
  }
  return outcome.interrupted ? kInterrupted : 0;
}

/// The trainer of a new run, which starts from random parameters or from those of the run train.init_from.
std::unique_ptr<Trainer> make_trainer(const Options& options, const std::shared_ptr<Communicator>& ranks) {
  Config config = load_config(options.config, options.sets);
  const bool quiet = options.quiet || !ranks->is_root();
  ONESTEP_CHECK(ConfigError, config.data.kind != DataKind::none, config.origin.at("/data/kind"),
                ": none: there is nothing to train on (give --set data.kind=text --set data.path=FILE)");
  if (config.train.init_from.empty()) return std::make_unique<Trainer>(config, nullptr, quiet, ranks);
  const FoundCheckpoint start = find_start(config);
  const auto tokenizer = take_tokenizer(config);
  auto trainer = std::make_unique<Trainer>(config, tokenizer, quiet, ranks);
  load_model(trainer->model(), start);
  return trainer;
}

/// Refuses ranks that differ in program, config or data, naming what differs: their gradients would not belong together.
void check_same_everywhere(Trainer& trainer) {
  Communicator& ranks = trainer.communicator();
  if (ranks.size() == 1) return;
  const std::pair<const char*, std::string> all[] = {
      {"program (version and file)", ONESTEP_VERSION " " + stamp_file("/proc/self/exe").hash},
      {"config", hash_of(resolved_json(trainer.config()))},
      {"data", trainer.data_hash()},
  };
  for (const auto& [what, mine] : all) {
    const std::vector<std::string> theirs = ranks.gather_text(mine);
    ranks.on_root([&, what = what] {
      for (size_t r = 0; r < theirs.size(); ++r)
        ONESTEP_CHECK(ConfigError, theirs[r] == theirs[0], "the ranks differ: rank ", r, " has another ", what,
                      " than rank 0: ", theirs[r], ", not ", theirs[0]);
    });
  }
}

/// Refuses a start that would move or delete what it reads. The earlier run's own config.json may be its config: the new run
/// writes it anew.
void check_sources_stay(const std::string& config_file, const Config& config, const fs::path& run) {
  std::vector<fs::path> sources;
  if (!config.train.init_from.empty()) sources.push_back(run_path(config.train.init_from));
  std::error_code none;
  if (!fs::equivalent(config_file, run / "config.json", none)) sources.emplace_back(config_file);
  for (const std::string& file : text_files(config)) sources.emplace_back(file);
  if (!config.data.tokenizer_path.empty()) sources.push_back(run_path(config.data.tokenizer_path));
  for (const fs::path& source : sources) check_stays(source, run);
}

int start_run(const Options& options, const std::shared_ptr<Communicator>& ranks) {
  std::unique_ptr<Trainer> made;
  ranks->on_all([&] { made = make_trainer(options, ranks); });
  Trainer& trainer = *made;
  check_same_everywhere(trainer);
  const fs::path run = options.out.empty() ? default_run_folder(options.config) : run_path(options.out);
  std::optional<RunLock> lock;
  ranks->on_root([&] {
    check_sources_stay(options.config, trainer.config(), run);
    lock.emplace(create_run(run, trainer.config(), trainer.data().tokenizer()));
  });
  return train_run(trainer, lock ? &*lock : nullptr, {}, options);
}

/// The trainer of a resumed run.
std::unique_ptr<Trainer> make_resumed_trainer(const Options& options, const fs::path& run, bool quiet,
                                              const std::shared_ptr<Communicator>& ranks) {
  Config config = load_run_config(run, options.sets);
  auto tokenizer = load_run_tokenizer(run);
  // Killed before it wrote its tokenizer, the run would make another one of its text.
  if (tokenizer == nullptr && !config.train.init_from.empty()) tokenizer = take_tokenizer(config);
  const bool other_path = config.origin.sets.contains("/data/tokenizer_path");
  if (tokenizer != nullptr && other_path) check_tokenizer_path(config, *tokenizer, run);
  return std::make_unique<Trainer>(config, tokenizer, quiet, ranks);
}

/// Loads the parameters of train.init_from again into a run that restarts at its first step.
void load_start(Trainer& trainer, const fs::path& run, bool quiet) {
  if (trainer.config().train.init_from.empty()) return;
  fs::path from;
  trainer.communicator().on_all([&] {
    try {
      const FoundCheckpoint start = find_start(trainer.config());
      load_model(trainer.model(), start);
      from = start.folder;
    } catch (const Error& error) {
      throw IoError(run.string() + ": holds no checkpoint yet and cannot start again from train.init_from: " + error.what());
    }
  });
  if (!quiet) std::cerr << "with the parameters of " << from.string() << '\n';
}

/// Loads the newest intact checkpoint; prints which, and which newer ones are damaged.
RunState load_newest(Trainer& trainer, const fs::path& run, const RunLock* lock, bool quiet) {
  Communicator& ranks = trainer.communicator();
  std::optional<FoundCheckpoint> found;
  ranks.on_root([&] {
    found = newest_checkpoint(run);
    lock->check_here();  // all that was read is of the run that is locked
  });
  if (!ranks.any(found.has_value())) {
    if (!quiet) std::cerr << run.string() << ": holds no checkpoint yet: starting from the first step\n";
    load_start(trainer, run, quiet);
    return {};
  }
  try {
    trainer.load_state(found ? found->checkpoint.trainer : TrainerState());
  } catch (const SharedError&) {
    throw;
  } catch (const Error& error) {
    throw IoError(found->folder.string() + ": cannot be resumed: " + error.what());
  }
  if (!found) return {};
  for (const auto& [folder, reason] : found->damaged) {
    set_checkpoint_aside(folder);
    std::cerr << "onestep: " << escaped(reason) << " (kept as " << folder.filename().string() << ".damaged)\n";
  }
  if (!quiet || !found->damaged.empty()) std::cerr << "resuming from " << found->folder.string() << '\n';
  return found->checkpoint.run;
}

/// Prints why there is nothing to do for a run at `state`, if so.
bool is_done(const Trainer& trainer, const RunState& state, const fs::path& run) {
  const int64_t steps = trainer.config().train.steps, done = trainer.steps_done();
  ONESTEP_CHECK(ConfigError, done <= steps, trainer.config().origin.at("/train/steps"), ": must be at least ", done,
                ", the steps already done: got ", steps);
  if (done == steps && !state.unfinished) {
    std::cerr << run.string() << ": all " << count(steps) << " steps are done (train further with --set train.steps=N)\n";
    return true;
  }
  if (stops_early(trainer.config().train, done, state)) {
    std::cerr << run.string() << ": was stopped early after " << count(done)
              << " steps (train further with --set train.early_stop_patience=0)\n";
    return true;
  }
  return false;
}

/// The root's state, everywhere.
RunState broadcast_state(Communicator& ranks, RunState state) {
  static_assert(std::is_trivially_copyable_v<RunState>);
  ranks.broadcast(std::as_writable_bytes(std::span(&state, 1)));
  return state;
}

int resume_run(const Options& options, const std::shared_ptr<Communicator>& ranks) {
  const fs::path run = run_path(options.resume);
  const bool quiet = options.quiet || !ranks->is_root();
  std::optional<RunLock> lock;
  std::unique_ptr<Trainer> made;
  ranks->on_root([&] {
    load_run_config(run);  // says so where there is no run
    lock.emplace(run);
  });
  ranks->on_all([&] { made = make_resumed_trainer(options, run, quiet, ranks); });
  Trainer& trainer = *made;
  check_same_everywhere(trainer);
  RunState state = broadcast_state(*ranks, load_newest(trainer, run, lock ? &*lock : nullptr, quiet));
  bool done = false;
  ranks->on_root([&] {
    done = is_done(trainer, state, run);
    lock->naming_errors([&] { write_run_config(lock->folder(), trainer.config(), trainer.data().tokenizer()); });
  });
  return ranks->any(done) ? 0 : train_run(trainer, lock ? &*lock : nullptr, state, options);
}

/// For the start of the ranks. What is wrong with the config they say afterwards, together.
double start_timeout(const Options& options, bool resumes) {
  try {
    const Config config =
        resumes ? load_run_config(run_path(options.resume), options.sets) : load_config(options.config, options.sets);
    return config.distributed.timeout;
  } catch (const Error&) {
    return DistributedConfig().timeout;
  }
}

int run_training(const Options& options, bool resumes) {
  try {
    return run_ranks([&] { return start_timeout(options, resumes); },
                     [&](const std::shared_ptr<Communicator>& ranks) {
                       return resumes ? resume_run(options, ranks) : start_run(options, ranks);
                     });
  } catch (const DivergedError& error) {
    std::cerr << "onestep: " << error.what() << '\n';
    return kDiverged;
  }
}

}  // namespace

void add_train(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("train", "Train a model as a config file says");
  auto* config = command->add_option("CONFIG", options->config, "The config file of a new run");
  command->add_set_option(options->sets, "optimizer.lr=0.01");
  auto* out =
      command
          ->add_option(
              "--out", options->out,
              "Run folder (default: runs/<config name>); an earlier run of that name becomes RUN.previous, RUN.previous.2, ...")
          ->type_name("RUN");
  auto* resume =
      command
          ->add_option(
              "--resume", options->resume,
              "Resume an interrupted or finished run with its own config, without CONFIG and --out; --set may change the "
              "keys that docs/config.md marks")
          ->type_name("RUN")
          ->excludes(config)
          ->excludes(out);
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->add_flag("--profile", options->profile, "At the end, the time, share, GFLOP/s and bytes per second of each op");
  command->footer(config_help());
  command->callback([options, config, resume, &action] {
    ONESTEP_CHECK(ConfigError, config->was_given() || resume->was_given(),
                  "train: needs a CONFIG, or --resume RUN (see onestep train --help)");
    action = [options, resumes = resume->was_given()] { return run_training(*options, resumes); };
  });
}

}  // namespace onestep::cli
