#pragma once
// A run from its start to its report, driven by the command line or Python.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/run_folder.h"
#include "train/run_loop.h"
#include "train/trainer.h"

namespace onestep::train {

/// A run in the hands of this process, ready to train. Of several ranks each has one; the root's alone has the lock and writes.
struct ActiveRun {
  std::unique_ptr<Trainer> trainer;
  std::optional<RunLock> lock = {};
  RunState state = {};
  std::string done = {};  ///< Why there is nothing left to train, as a sentence; empty where there is.
};

/// Throws IoError or ConfigError for a new run whose text, tokenizer or train.init_from cannot be read, before it is started.
void check_sources(const Config& config);

/// Starts the run of a resolved config in the folder `run` (create_run), from random parameters or those of train.init_from.
/// Notes go to stderr unless `quiet`. Throws ConfigError or IoError, also for a folder that holds what the run reads.
ActiveRun start_run(const Config& config, const std::filesystem::path& run, const std::shared_ptr<Communicator>& ranks,
                    bool quiet);

/// Continues a run from its newest intact checkpoint, its config changed by `sets` where it may change. Damaged checkpoints
/// are renamed, which stderr says. Throws ConfigError or IoError.
ActiveRun resume_run(const std::filesystem::path& run, const std::vector<std::string>& sets,
                     const std::shared_ptr<Communicator>& ranks, bool quiet);

/// Trains to the end of the run, or until it is stopped (run_steps).
Outcome train_run(ActiveRun& run, const Watch& watch);

/// Writes summary.json and report.html of a run that has trained. What cannot be made or written is said on stderr: the run
/// itself is saved.
void write_page(ActiveRun& run);

}  // namespace onestep::train
