#include "train/schedule.h"

#include <cmath>
#include <numbers>

namespace onestep::train {

double learning_rate(const ScheduleConfig& schedule, double lr, int64_t step) {
  const auto t = static_cast<double>(step), warmup = static_cast<double>(schedule.warmup_steps);
  if (step < schedule.warmup_steps) return lr * (t + 1) / (warmup + 1);
  if (schedule.kind == "constant") return lr;
  if (step >= schedule.decay_steps) return schedule.min_lr;
  const double progress = (t - warmup) / (static_cast<double>(schedule.decay_steps) - warmup);
  const double rest = schedule.kind == "linear" ? 1 - progress : 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return schedule.min_lr + rest * (lr - schedule.min_lr);
}

}  // namespace onestep::train
