#include "train/log/progress.h"

#include <algorithm>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "base/format.h"
#include "base/machine.h"
#include "base/status_line.h"
#include "base/utf8.h"

namespace onestep::train {
namespace {

constexpr int64_t kSmoothed = 20;  // steps: old losses have no part in the mean, however much larger they were

template <class... T>
std::string text(const T&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

Progress::Progress(int64_t total_steps, bool quiet)
    : total_steps_(total_steps), quiet_(quiet), line_(std::make_unique<StatusLine>()) {}

Progress::~Progress() { line_->keep(); }

/// The most important first: a narrow terminal has no room for the last ones.
std::vector<std::string> Progress::parts(const StepMetrics& m) const {
  const bool many = m.step > first_step_, last = m.step + 1 == total_steps_;
  std::vector<std::string> parts = {text("step ", m.step + 1, '/', total_steps_), "loss " + loss_text(m.loss)};
  if (m.val_loss) parts.push_back("val_loss " + loss_text(*m.val_loss));
  if (m.val_accuracy) parts.push_back("val_accuracy " + grouped(100 * *m.val_accuracy, 2) + '%');
  if (m.val_f1) parts.push_back("val_f1 " + grouped(*m.val_f1, 4));
  if (many) parts.push_back("smoothed " + loss_text(mean(recent_)));
  if (many && !last) {
    const double per_step = (m.seconds - first_seconds_) / static_cast<double>(m.step - first_step_);
    parts.push_back(duration(per_step * static_cast<double>(total_steps_ - m.step - 1)) + " left");
  }
  parts.push_back(text("lr ", std::setprecision(3), m.lr));
  parts.push_back(grouped(m.tokens_per_second) + " tokens/s");
  parts.push_back(grouped(memory_mib()) + " MiB");
  return parts;
}

/// On a terminal ten times a second.
bool Progress::is_due(int64_t steps_done, Clock::time_point now) const {
  if (line_->is_terminal()) return now - last_ >= std::chrono::milliseconds(100);
  const std::chrono::duration<double> since = now - start_;
  return steps_done % steps_between_lines(steps_done - first_step_, since.count()) == 0;
}

void Progress::show(const StepMetrics& m) {
  if (std::ssize(recent_) == kSmoothed) recent_.erase(recent_.begin());
  recent_.push_back(m.loss);
  if (first_step_ < 0) {
    first_step_ = m.step;
    first_seconds_ = m.seconds;
  }
  if (quiet_) return;
  const bool stays = m.val_loss.has_value() || m.step + 1 == total_steps_;
  const auto now = Clock::now();
  if (!stays && m.step != first_step_ && !is_due(m.step + 1, now)) return;
  last_ = now;
  stays ? line_->print(parts(m)) : line_->show(parts(m));
}

void Progress::show_text(int64_t step, const std::string& written) {
  if (quiet_) return;
  line_->print({text("step ", step + 1, '/', total_steps_), "writes:"});
  std::istringstream lines(written);
  for (std::string line; std::getline(lines, line);) line_->print({"    " + escaped(line)});
}

int64_t steps_between_lines(int64_t steps, double seconds) {
  const auto done = static_cast<double>(steps);
  const double least = std::max(done / 50, seconds > 0 ? done / seconds : done);
  int64_t power = 1;
  while (static_cast<double>(10 * power) <= least) power *= 10;
  for (const int64_t factor : {1, 2, 5})
    if (static_cast<double>(factor * power) >= least) return factor * power;
  return 10 * power;
}

}  // namespace onestep::train
