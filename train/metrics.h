#pragma once
// What a run writes while it trains: metrics.jsonl for programs, progress lines for people.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "train/files.h"

namespace onestep::train {

/// One training step as it is logged.
struct StepMetrics {
  int64_t step = 0;
  double loss = 0;  ///< Before this step's update, the mean over micro-batches.
  double lr = 0;
  double grad_norm = 0;  ///< Before clipping.
  double tokens_per_second = 0;
  double seconds = 0;  ///< Since training began.
  std::optional<double> val_loss = {}, val_accuracy = {};
};

/// One JSON object a step in a file; float32 values keep the digits that read back to the same bits. Throws IoError.
class MetricsFile {
 public:
  /// Goes on after the lines of the steps before `first_step`; later ones (of a run that was killed) and half a line at the end
  /// are cut off. A line before them that is none of ours is refused.
  MetricsFile(const std::string& path, int64_t first_step);
  void write(const StepMetrics& metrics);
  /// Waits until the lines are on the disk.
  void sync() { out_.sync(); }

 private:
  OutputFile out_;
};

/// Progress on stderr: on a terminal one line that renews itself, elsewhere a plain line now and then.
class Progress {
 public:
  Progress(int64_t total_steps, bool quiet);
  /// Shows a step; validation results always get a line of their own.
  void show(const StepMetrics& metrics);
  /// Leaves the terminal on a fresh line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(const StepMetrics& metrics) const;

  int64_t total_steps_;
  bool quiet_, terminal_, open_line_ = false;
  Clock::time_point last_{};
  int64_t first_step_ = -1;
  double first_seconds_ = 0;
};

/// `1h 2min 3s`: a time for people.
std::string duration(double seconds);

/// `12,345` with `digits` decimals: a number for people.
std::string grouped(double value, int digits = 0);

}  // namespace onestep::train
