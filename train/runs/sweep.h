#pragma once
// A grid of runs: every combination of values of some config keys.
#include <filesystem>
#include <string>
#include <vector>

#include "train/config/config.h"

namespace onestep::train {

/// A config key and the values that it takes, as --set takes them.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};

/// `optimizer.lr=1e-3,3e-3`; commas inside of brackets, braces and quotes separate nothing. Throws ConfigError.
SweepAxis parse_axis(const std::string& text);

/// One run of a sweep.
struct SweepRun {
  std::string name;                 ///< Of its folder: `lr=1e-3,num_heads=2`.
  std::vector<std::string> values;  ///< One an axis.
  Config config;
};

/// Every combination, the last axis running fastest, each with its config: that of the file with `sets` and the values. Throws
/// ConfigError for a wrong one, an axis that is there twice, two runs of the same name, and more than 1,000 runs; IoError.
std::vector<SweepRun> sweep_runs(const std::string& config_path, const std::vector<std::string>& sets,
                                 const std::vector<SweepAxis>& axes);

/// The sets with which the run in a folder continues as `config` says: what is given in it and differs from the run's own.
std::vector<std::string> changes(const std::filesystem::path& run, const Config& config);

}  // namespace onestep::train
