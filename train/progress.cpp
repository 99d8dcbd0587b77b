#include "train/progress.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "train/machine.h"

namespace onestep::train {
namespace {

constexpr double kKept = 0.95;  // of the moving average, at every logged step

template <class... T>
std::string text(const T&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace

Progress::Progress(int64_t total_steps, bool quiet) : total_steps_(total_steps), quiet_(quiet) {}

/// The most important first: a narrow terminal has no room for the last ones.
std::vector<std::string> Progress::parts(const StepMetrics& m) const {
  std::vector<std::string> parts = {text("step ", m.step + 1, '/', total_steps_), "loss " + grouped(m.loss, 4)};
  if (m.step > first_step_) parts.push_back("smoothed " + grouped(average_ / weight_, 4));
  if (m.val_loss) parts.push_back("val_loss " + grouped(*m.val_loss, 4));
  if (m.val_accuracy) parts.push_back("val_accuracy " + grouped(100 * *m.val_accuracy, 2) + '%');
  if (m.step > first_step_) {
    const double per_step = (m.seconds - first_seconds_) / static_cast<double>(m.step - first_step_);
    parts.push_back(duration(per_step * static_cast<double>(total_steps_ - m.step - 1)) + " left");
  }
  parts.push_back(text("lr ", std::setprecision(3), m.lr));
  parts.push_back(grouped(m.tokens_per_second) + " tokens/s");
  parts.push_back(grouped(memory_mib()) + " MiB");
  return parts;
}

/// On a terminal ten times a second; elsewhere after a second or a fiftieth of the run's time.
bool Progress::is_due(Clock::time_point now) const {
  constexpr std::chrono::milliseconds kTenth(100), kSecond(1000);
  const Clock::duration pause =
      line_.is_terminal() ? Clock::duration(kTenth) : std::max<Clock::duration>(kSecond, (now - start_) / 50);
  return now - last_ >= pause;
}

void Progress::show(const StepMetrics& m) {
  average_ = kKept * average_ + (1 - kKept) * m.loss;
  weight_ = kKept * weight_ + (1 - kKept);
  if (first_step_ < 0) {
    first_step_ = m.step;
    first_seconds_ = m.seconds;
  }
  if (quiet_) return;
  const bool stays = m.val_loss.has_value() || m.step + 1 == total_steps_;
  const auto now = Clock::now();
  if (!stays && m.step != first_step_ && !is_due(now)) return;
  last_ = now;
  stays ? line_.print(parts(m)) : line_.show(parts(m));
}

}  // namespace onestep::train
