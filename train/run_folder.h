#pragma once
// The folder of a run: resolved config, metrics, tokenizer and checkpoints (docs/formats.md).
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "train/config/config.h"
#include "train/text/tokenizer.h"

namespace onestep::train {

/// Where `onestep train CONFIG` writes: runs/NAME, NAME being the config's file name without its extension.
std::filesystem::path default_run_folder(const std::string& config_path);

/// The folder that a command line names, without a slash at its end. Throws ConfigError for an empty name.
std::filesystem::path run_path(const std::string& name);

/// Whether this is the folder of a run: config.json is one of ours, with metrics or checkpoints beside it or nothing but what a
/// start writes before them. A config.json alone tells nothing: another program's, or the user's own, may be beside
/// anything.
bool is_run(const std::filesystem::path& folder);

/// RUN/metrics.jsonl. Throws IoError where there is none.
std::string metrics_path(const std::filesystem::path& run);

/// Throws ConfigError if create_run(run) would move `source`, of which the run is to be made.
void check_stays(const std::filesystem::path& source, const std::filesystem::path& run);

/// A run's folder in the hands of the one process that may write to it, until that process ends, however it ends. It holds the
/// folder, not the name: one can rename it, start another run under the old name, and keep both.
class RunLock {
 public:
  /// Throws IoError if another process holds the folder, or there is none.
  explicit RunLock(const std::filesystem::path& run);
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;

  /// A path to write through, which leads to the folder whatever it is called by now (Linux's /proc; elsewhere its name).
  std::filesystem::path folder() const;
  /// What it is called now.
  std::filesystem::path name() const;
  /// Throws IoError if the folder has been renamed since it was locked.
  void check_here() const;
  /// Whether it has still the name with which it was locked.
  bool is_here() const;
  /// Calls `work`; an IoError of it that says folder() says name() instead.
  void naming_errors(const std::function<void()>& work) const;

 private:
  std::filesystem::path run_;
  int fd_;
};

/// Makes the folder of a new run with its config and its tokenizer (null for none). An earlier run of that name is moved to
/// NAME.previous, or NAME.previous.2 and so on where that is taken, which stderr says. Throws IoError, also for a folder
/// that is there and no run. Nothing is left where it cannot be written.
RunLock create_run(const std::filesystem::path& run, const Config& config, const Tokenizer* tokenizer);

/// Deletes a run that could not be made whole. What cannot be deleted stays.
void discard_run(const RunLock& lock);

/// Writes config.json, and tokenizer.json if the run has one, where they differ from what is there.
void write_run_config(const std::filesystem::path& run, const Config& config, const Tokenizer* tokenizer);

/// The config a run was trained with, changed by `sets` where it may change when the run continues; throws ConfigError naming
/// another key, IoError naming the folder if it is no run.
Config load_run_config(const std::filesystem::path& run, const std::vector<std::string>& sets = {});

/// The tokenizer a run was trained with; null for a run without text.
std::shared_ptr<const Tokenizer> load_run_tokenizer(const std::filesystem::path& run);

}  // namespace onestep::train
