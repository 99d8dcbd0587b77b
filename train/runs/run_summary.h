#pragma once
// What came of runs, side by side.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/config/config.h"

namespace onestep::train {

/// A figure over the steps of a run: updates done and its value, in order.
using Curve = std::vector<std::pair<int64_t, double>>;

/// A run folder's config, and of its metrics what one compares.
struct RunSummary {
  std::string name = {};
  Config config = {};
  Curve loss = {}, val_loss = {};
  std::optional<double> val_accuracy = {};  ///< Of the last evaluation.
  int64_t steps = 0;                        ///< Logged so far.
  double seconds = 0;

  /// The evaluation with the lowest loss, the first of them; none without an evaluation.
  std::optional<std::pair<int64_t, double>> best() const;
};

/// Reads the folder of a run. Throws IoError, also where it has no metrics.
RunSummary summarize_run(const std::filesystem::path& run);

/// A column a run: the keys in which their configs differ, then figures, then losses at up to ten steps: those of training as
/// means since the row before.
std::string comparison(const std::vector<RunSummary>& runs);

}  // namespace onestep::train
