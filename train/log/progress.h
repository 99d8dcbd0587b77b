#pragma once
// The progress of a run on stderr.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/log/metrics.h"

namespace onestep {
class StatusLine;
}

namespace onestep::train {

/// Progress on stderr: step, loss, evaluation, mean of the last losses, time left, learning rate, tokens/s and memory. On a
/// terminal one line that renews itself, with a line for every evaluation above it; elsewhere a plain line now and then.
class Progress {
 public:
  Progress(int64_t total_steps, bool quiet);
  /// What was shown last stays on the terminal.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Takes every step; an evaluation and the last step get a line that stays.
  void show(const StepMetrics& metrics);
  /// Shows what the model writes after a step, in lines that stay.
  void show_text(int64_t step, const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<std::string> parts(const StepMetrics& metrics) const;
  bool is_due(int64_t steps_done, Clock::time_point now) const;

  int64_t total_steps_;
  bool quiet_;
  std::unique_ptr<StatusLine> line_;
  Clock::time_point start_ = Clock::now(), last_{};
  int64_t first_step_ = -1;
  double first_seconds_ = 0;
  std::vector<double> recent_;  // losses of the last steps
};

/// Steps between two plain lines of a process that has done `steps` in so many seconds: 1, 2, 5, 10, 20, 50, ..., so many that
/// they take a second, and a fiftieth of the time so far.
int64_t steps_between_lines(int64_t steps, double seconds);

}  // namespace onestep::train
