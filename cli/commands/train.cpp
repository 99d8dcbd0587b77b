#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>

#include "autograd/autocast.h"
#include "autograd/kernels/parallel.h"
#include "autograd/memory.h"
#include "autograd/profiler.h"
#include "base/format.h"
#include "base/machine.h"
#include "cli/commands/commands.h"
#include "cli/commands/page_process.h"
#include "cli/commands/stop_signals.h"
#include "optim/schedule.h"
#include "train/config/config_fields.h"
#include "train/distributed/mpi/ranks.h"
#include "train/runs/run.h"

namespace onestep::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string config, out, resume;
  std::vector<std::string> sets;
  bool quiet = false, profile = false, watch = false;
};

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
  std::cout << "steps        " << grouped_count(trainer.steps_done()) << " in " << grouped(outcome.last->seconds, 1) << " s\n"
            << "train loss   " << loss_text(outcome.last->loss) << " in the last step\n";
  if (const auto& evaluation = outcome.evaluation)
    std::cout << "val loss     " << loss_text(evaluation->loss) << '\n'
              << "val accuracy " << grouped(100 * evaluation->accuracy, 2) << " % of " << grouped_count(evaluation->tokens)
              << " predictions on " << evaluates_on(trainer.config().data) << '\n';
  if (outcome.evaluation && !outcome.evaluation->confusion.empty())
    std::cout << "val macro F1 " << grouped(outcome.evaluation->macro_f1(), 4) << '\n';
  if (outcome.interrupted)
    std::cout << "stopped      by a signal, after " << grouped_count(trainer.steps_done()) << " of "
              << grouped_count(trainer.config().train.steps) << " steps, and saved: continue with train --resume "
              << run.string() << '\n';
  if (outcome.stopped_early)
    std::cout << "stopped      early: no better val loss in " << grouped_count(trainer.config().train.early_stop_patience)
              << " evaluations (the best checkpoint is kept: eval --checkpoint best)\n";
  if (const auto loss = trainer.data().bigram_loss())
    std::cout << "bigrams      " << loss_text(*loss)
              << (trainer.config().data.val_fraction > 0 ? " val loss of a bigram model of the training tokens\n"
                                                         : " lowest training loss of a bigram model\n");
  if (outcome.steps > 0)
    std::cout << "speed        " << grouped(static_cast<double>(outcome.tokens) / outcome.step_seconds) << " tokens/s\n";
  if (outcome.steps > 0 && peaks.size() > 1)
    std::cout << "exchange     " << grouped(100 * outcome.traffic.seconds / outcome.step_seconds, 1) << " % of the time; "
              << grouped_count(outcome.traffic.bytes / outcome.steps) << " bytes a step sent by rank 0\n";
  print_peaks(peaks);
  std::cout << "run folder   " << run.string() << '\n';
}

/// Says where all steps are warm-up, where the run ends far before the schedule does, and where steps that the command line
/// adds run at min_lr, after the end of the schedule.
void say_schedule(const Config& config) {
  const optim::ScheduleConfig& schedule = config.schedule;
  const int64_t steps = config.train.steps;
  const bool ends = holds(find_field("schedule.decay_steps")->when, config), all_warm_up = steps <= schedule.warmup_steps;
  const double last = optim::learning_rate(schedule, config.optimizer.lr, steps - 1);
  if (all_warm_up)
    std::cerr << "all " << grouped_count(steps)
              << " steps are warm-up (schedule.warmup_steps = " << grouped_count(schedule.warmup_steps)
              << "): the learning rate rises to " << std::setprecision(3) << last
              << " of optimizer.lr = " << to_json(config.optimizer.lr) << '\n';
  constexpr int64_t kFar = 10;  // a tenth of the schedule
  if (ends && !all_warm_up && steps < schedule.decay_steps - schedule.decay_steps / kFar)
    std::cerr << "the run ends at step " << grouped_count(steps)
              << ", far before its schedule (schedule.decay_steps = " << grouped_count(schedule.decay_steps)
              << "): the last learning rate is " << std::setprecision(3) << last
              << ", not schedule.min_lr = " << to_json(schedule.min_lr) << '\n';
  if (ends && config.origin.sets.contains("/train/steps") && steps > schedule.decay_steps)
    std::cerr << "the schedule ends at step " << grouped_count(schedule.decay_steps)
              << " (schedule.decay_steps): the steps after it run at the learning rate " << to_json(schedule.min_lr)
              << " (schedule.min_lr)\n";
}

/// Says where products of bfloat16 in the other order would be faster on this CPU.
void say_precision(Precision precision) {
  if (precision == Precision::bf16 && fastest_bf16_order() == Bf16Order::amx)
    std::cerr << "this CPU has AMX: train.precision = bf16_amx is several times as fast on it as bf16\n";
  if (precision == Precision::bf16_amx && fastest_bf16_order() != Bf16Order::amx)
    std::cerr << "AMX is not used here: without it train.precision = bf16 is faster than bf16_amx\n";
}

/// Serves the page with the run in it until it is destroyed.
std::unique_ptr<PageProcess> watch_run(const fs::path& run) {
  auto page = std::make_unique<PageProcess>(run, find_page(), 0);
  const std::string address = page->address() + "#/training?watch=" + run.filename().string();
  std::cerr << "watch it at " << address << '\n';
  open_browser(address);
  return page;
}

/// Trains a run that was started or resumed, and says what came of it.
int finish_run(ActiveRun& run, const Options& options) {
  Trainer& trainer = *run.trainer;
  Communicator& ranks = trainer.communicator();
  const bool quiet = options.quiet || !ranks.is_root();
  const auto threads = ranks.all_gather({static_cast<double>(kernels::num_threads())});
  const auto on_pipe = std::signal(SIGPIPE, SIG_IGN);  // where nobody reads the progress any more the run continues without it
  if (!quiet) {
    std::cerr << trainer.data().describe() << "\ntraining " << trainer.describe_parameters() << " parameters for "
              << grouped_count(trainer.config().train.steps - trainer.steps_done()) << " steps of "
              << grouped_count(trainer.tokens_per_step()) << " tokens\n";
    say_schedule(trainer.config());
    say_precision(trainer.config().train.precision);
    if (ranks.size() > 1) print_ranks(trainer.config().distributed, threads);
  }
  std::unique_ptr<PageProcess> page;
  if (options.watch && ranks.is_root()) page = watch_run(run.lock->name());
  catch_stop_signals(quiet);
  std::optional<Profiler> profiler;
  if (options.profile && ranks.is_root()) profiler.emplace();
  const Outcome outcome = train_run(run, {.stopped = stop_signalled, .quiet = quiet});
  const std::string profile = profiler ? '\n' + profile_table(profiler->entries()) : "";
  const std::vector<Peak> peaks = gather_peaks(ranks);
  if (ranks.is_root()) {
    write_page(run);
    std::signal(SIGPIPE, on_pipe);  // all is saved
    print_summary(trainer, outcome, peaks, run.lock->name());
    std::cout << profile << std::flush;
    if (page && !outcome.interrupted) page->finish();
  }
  return outcome.interrupted ? kInterrupted : 0;
}

int start(const Options& options, const std::shared_ptr<Communicator>& ranks) {
  const bool quiet = options.quiet || !ranks->is_root();
  const fs::path folder = options.out.empty() ? default_run_folder(options.config) : run_path(options.out);
  Config config;
  ranks->on_all([&] { config = load_config(options.config, options.sets); });
  ActiveRun run = start_run(config, folder, ranks, quiet);
  return finish_run(run, options);
}

int resume(const Options& options, const std::shared_ptr<Communicator>& ranks) {
  const bool quiet = options.quiet || !ranks->is_root();
  const fs::path folder = run_path(options.resume);
  ActiveRun run = resume_run(folder, options.sets, ranks, quiet);
  if (run.done.empty()) return finish_run(run, options);
  if (ranks->is_root()) std::cerr << folder.string() << ": " << run.done << '\n';
  return 0;
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
  if (options.watch) find_page();  // before anything is written
  try {
    return run_ranks(
        [&] { return start_timeout(options, resumes); },
        [&](const std::shared_ptr<Communicator>& ranks) { return resumes ? resume(options, ranks) : start(options, ranks); });
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
  command->add_flag("--watch", options->watch, "Open the web page on the run while it trains (see onestep play)");
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->add_flag("--profile", options->profile, "At the end, the time, share, GFLOP/s and bytes per second of each op");
  command->footer(
      "Keys of the config file (--set section.key=value); onestep help config, or\nonestep help config KEY, "
      "explains them:\n\n" +
      config_keys());
  command->callback([options, config, resume, &action] {
    ONESTEP_CHECK(ConfigError, config->was_given() || resume->was_given(),
                  "train: needs a CONFIG, or --resume RUN (see onestep train --help)");
    action = [options, resumes = resume->was_given()] { return run_training(*options, resumes); };
  });
}

}  // namespace onestep::cli
