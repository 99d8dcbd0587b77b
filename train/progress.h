#pragma once
// What a run shows of itself while it trains.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "train/live_line.h"
#include "train/metrics.h"

namespace onestep::train {

/// Progress on stderr: step, loss, its moving average, learning rate, tokens/s, time left and memory. On a terminal one line
/// that renews itself, with a line for every evaluation above it; elsewhere a plain line now and then, in a long run ever more
/// seldom.
class Progress {
 public:
  Progress(int64_t total_steps, bool quiet);
  /// What was shown last stays on the terminal.
  ~Progress() { line_.keep(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows a logged step; an evaluation and the last step get a line that stays.
  void show(const StepMetrics& metrics);

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<std::string> parts(const StepMetrics& metrics) const;
  bool is_due(Clock::time_point now) const;

  int64_t total_steps_;
  bool quiet_;
  LiveLine line_;
  Clock::time_point start_ = Clock::now(), last_{};
  int64_t first_step_ = -1;
  double first_seconds_ = 0, average_ = 0, weight_ = 0;  // average_ / weight_: the moving average of the loss
};

}  // namespace onestep::train
