#pragma once
// Progress on stderr of work that may take long: `tokenising x.txt: 45% of 1,024 MiB, 12s left`.
#include <chrono>
#include <cstdint>
#include <string>

#include "base/status_line.h"

namespace onestep {

/// Says nothing in the first second; then a line that renews itself on a terminal, elsewhere a plain line every five seconds.
class ProgressBar {
 public:
  /// `total` counts units of `unit`.
  ProgressBar(std::string what, int64_t total, std::string unit, bool quiet);
  /// `done` of the total are done.
  void show(int64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_, unit_;
  int64_t total_;
  bool quiet_;
  StatusLine line_;
  Clock::time_point start_ = Clock::now(), next_ = start_ + std::chrono::seconds(1);
};

}  // namespace onestep
