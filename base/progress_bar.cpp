#include "base/progress_bar.h"

#include <algorithm>

#include "base/format.h"

namespace onestep {

ProgressBar::ProgressBar(std::string what, int64_t total, std::string unit, bool quiet)
    : what_(std::move(what)), unit_(std::move(unit)), total_(total), quiet_(quiet) {}

void ProgressBar::show(int64_t done) {
  const auto now = Clock::now();
  if (quiet_ || now < next_ || total_ <= 0 || done <= 0) return;
  next_ = now + (line_.is_terminal() ? std::chrono::milliseconds(200) : std::chrono::milliseconds(5000));
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  line_.show({what_ + ": " + grouped(100 * share) + "% of " + grouped(static_cast<double>(total_)) + ' ' + unit_ + ", " +
              duration(seconds / share - seconds) + " left"});
}

}  // namespace onestep
