#include "train/runs/run.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "autograd/kernels/isa.h"
#include "autograd/kernels/parallel.h"
#include "base/format.h"
#include "base/machine.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "base/write_file.h"
#include "train/checkpoint/frozen_file.h"
#include "train/data/text_source.h"
#include "train/report/report.h"
#include "train/runs/init_from.h"
#include "train/runs/run_report.h"

namespace onestep::train {
namespace {

namespace fs = std::filesystem;

/// Gives a trainer the parameters that it starts from, which are then not held twice any more, and `base` the file that has
/// them.
void take_parameters(Trainer& trainer, FoundCheckpoint start, fs::path& base) {
  base = start.folder / "model.safetensors";
  load_start(trainer.model(), std::move(start));
}

/// The trainer of a new run, which starts from random parameters or from those of the run train.init_from; `base` is then the
/// file that they are from.
std::unique_ptr<Trainer> make_trainer(Config config, const std::shared_ptr<Communicator>& ranks, bool quiet, fs::path& base) {
  ONESTEP_CHECK(ConfigError, config.data.kind != DataKind::none, config.origin.at("/data/kind"),
                ": none: there is nothing to train on (give --set data.kind=text --set data.path=FILE)");
  if (config.train.init_from.empty()) return std::make_unique<Trainer>(config, nullptr, quiet, ranks);
  FoundCheckpoint start = find_start(config);
  const auto tokenizer = take_tokenizer(config);
  take_eos(config);
  auto trainer = std::make_unique<Trainer>(config, tokenizer, quiet, ranks);
  take_parameters(*trainer, std::move(start), base);
  return trainer;
}

/// What a run does not change need not be on the disk twice.
void share_base(Trainer& trainer, const fs::path& run, const fs::path& base) {
  const std::vector<Tensor> all = trainer.model().parameters();
  const bool frozen = std::any_of(all.begin(), all.end(), [](const Tensor& parameter) { return !parameter.requires_grad(); });
  if (frozen && !base.empty()) share_frozen(run, base);
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

/// The text that a run reads.
std::vector<std::string> data_files(const Config& config) {
  std::vector<std::string> files = text_files(config);
  const std::vector<std::string> validation = validation_files(config);
  files.insert(files.end(), validation.begin(), validation.end());
  return files;
}

/// Refuses a start that would move or delete what it reads. The earlier run's own config.json may be its config: the new run
/// writes it again.
void check_sources_stay(const Config& config, const fs::path& run) {
  std::vector<fs::path> sources;
  if (!config.train.init_from.empty()) sources.push_back(run_path(config.train.init_from));
  std::error_code none;
  const fs::path own = config.origin.file;
  if (fs::exists(own, none) && !fs::equivalent(own, run / "config.json", none)) sources.push_back(own);
  for (const std::string& file : data_files(config)) sources.emplace_back(file);
  if (!config.data.tokenizer_path.empty()) sources.push_back(run_path(config.data.tokenizer_path));
  for (const fs::path& source : sources) check_stays(source, run);
}

/// The trainer of a resumed run.
std::unique_ptr<Trainer> make_resumed_trainer(const fs::path& run, const std::vector<std::string>& sets, bool quiet,
                                              const std::shared_ptr<Communicator>& ranks) {
  Config config = load_run_config(run, sets);
  auto tokenizer = load_run_tokenizer(run);
  // Killed before it wrote its tokenizer, the run would make another one of its text.
  if (tokenizer == nullptr && !config.train.init_from.empty()) tokenizer = take_tokenizer(config);
  const bool other_path = config.origin.sets.contains("/data/tokenizer_path");
  if (tokenizer != nullptr && other_path) check_tokenizer_path(config, *tokenizer, run);
  return std::make_unique<Trainer>(config, tokenizer, quiet, ranks);
}

/// Loads the parameters of train.init_from again into a run that restarts at its first step.
void load_start_again(Trainer& trainer, const fs::path& run, bool quiet) {
  if (trainer.config().train.init_from.empty()) return;
  fs::path from;
  trainer.communicator().on_all([&] {
    try {
      take_parameters(trainer, find_start(trainer.config()), from);
    } catch (const Error& error) {
      throw IoError(run.string() + ": holds no checkpoint yet and cannot start again from train.init_from: " + error.what());
    }
  });
  trainer.communicator().on_root([&] { share_base(trainer, run, from); });
  if (!quiet) std::cerr << "with the parameters of " << from.parent_path().string() << '\n';
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
    load_start_again(trainer, run, quiet);
    return {};
  }
  try {
    const bool trained = !found || found->checkpoint.trainer.step > 0 || !found->checkpoint.trainer.data_hash.empty();
    ONESTEP_CHECK(ConfigError, trained, "it was imported (begin a run from it by train.init_from)");
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

/// Why there is nothing to do for a run at `state`; empty where there is.
std::string why_done(const Trainer& trainer, const RunState& state) {
  const int64_t steps = trainer.config().train.steps, done = trainer.steps_done();
  ONESTEP_CHECK(ConfigError, done <= steps, trainer.config().origin.at("/train/steps"), ": must be at least ", done,
                ", the steps already done: got ", steps);
  if (done == steps && !state.unfinished)
    return "all " + grouped_count(steps) + " steps are done (train further with --set train.steps=N)";
  if (stops_early(trainer.config().train, done, state))
    return "was stopped early after " + grouped_count(done) + " steps (train further with --set train.early_stop_patience=0)";
  return {};
}

/// The root's state, everywhere.
RunState broadcast_state(Communicator& ranks, RunState state) {
  static_assert(std::is_trivially_copyable_v<RunState>);
  ranks.broadcast(std::as_writable_bytes(std::span(&state, 1)));
  return state;
}

/// `AMD EPYC 7763, avx2, 2 threads`: processor, instruction set and threads in use.
std::string describe_machine() {
  const int threads = kernels::num_threads();
  return processor_name() + ", " + std::string(kernels::name(kernels::active_isa())) + ", " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads");
}

/// What the metrics do not say, for the report: summary.json.
void write_summary(Trainer& trainer, const fs::path& run) {
  write_file(run / "summary.json", nlohmann::ordered_json{{"parameters", trainer.describe_parameters()},
                                                          {"peak memory", grouped(peak_memory_mib()) + " MiB"},
                                                          {"machine", describe_machine()},
                                                          {"version", "onestep " ONESTEP_VERSION}}
                                           .dump(2) +
                                       "\n");
}

}  // namespace

void check_sources(const Config& config) {
  for (const std::string& file : data_files(config)) const InputFile readable(file);
  if (!config.data.tokenizer_path.empty()) open_tokenizer(config.data.tokenizer_path);
  if (!config.train.init_from.empty()) find_start(config);
}

ActiveRun start_run(const Config& config, const fs::path& run, const std::shared_ptr<Communicator>& ranks, bool quiet) {
  ActiveRun started;
  fs::path base;
  ranks->on_all([&] { started.trainer = make_trainer(config, ranks, quiet, base); });
  Trainer& trainer = *started.trainer;
  check_same_everywhere(trainer);
  ranks->on_root([&] {
    check_sources_stay(trainer.config(), run);
    started.lock.emplace(create_run(run, trainer.config(), trainer.data().tokenizer()));
    share_base(trainer, started.lock->folder(), base);
  });
  return started;
}

ActiveRun resume_run(const fs::path& run, const std::vector<std::string>& sets, const std::shared_ptr<Communicator>& ranks,
                     bool quiet) {
  ActiveRun resumed;
  std::optional<RunLock>& lock = resumed.lock;
  ranks->on_root([&] {
    load_run_config(run);  // says so where there is no run
    lock.emplace(run);
  });
  ranks->on_all([&] { resumed.trainer = make_resumed_trainer(run, sets, quiet, ranks); });
  Trainer& trainer = *resumed.trainer;
  check_same_everywhere(trainer);
  resumed.state = broadcast_state(*ranks, load_newest(trainer, run, lock ? &*lock : nullptr, quiet));
  ranks->on_root([&] {
    resumed.done = why_done(trainer, resumed.state);
    lock->naming_errors([&] { write_run_config(lock->folder(), trainer.config(), trainer.data().tokenizer()); });
  });
  resumed.done = ranks->gather_text(resumed.done)[0];
  return resumed;
}

Outcome train_run(ActiveRun& run, const Watch& watch) {
  if (!run.lock) return run_steps(*run.trainer, {}, run.state, watch);
  Outcome outcome;
  run.lock->naming_errors([&] { outcome = run_steps(*run.trainer, run.lock->folder(), run.state, watch); });
  return outcome;
}

void write_page(ActiveRun& run) {
  try {
    run.lock->naming_errors([&] {
      const fs::path folder = run.lock->folder();
      write_summary(*run.trainer, folder);
      ReportRun page = read_report_run(folder, run.trainer->config(), run.trainer.get());
      add_earlier_maps(page, folder, *run.trainer);
      page.name = run.lock->name().filename().string();
      check_report_file(folder / "report.html");
      write_file(folder / "report.html", report_html({page}));
    });
  } catch (const std::exception& error) {
    std::cerr << "onestep: report: not written: " << escaped(error.what()) << '\n';
  }
}

}  // namespace onestep::train
