#pragma once
// Learning-rate schedules: pure functions of the step.
#include <cstdint>

namespace onestep::train {

enum class ScheduleKind { constant, linear, cosine };

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  int64_t warmup_steps = 0;  ///< Steps of linear rise to the full rate.
  int64_t decay_steps = 0;   ///< The step at which min_lr is reached.
  double min_lr = 0.0;
};

/// The learning rate of update `step` (0 first): lr (step + 1) / (warmup_steps + 1) while warming up, then from `lr` down to
/// `min_lr` at `decay_steps`, in a straight line or along half a cosine; constant stays at `lr` (nanoGPT's get_lr).
double learning_rate(const ScheduleOptions& schedule, double lr, int64_t step);

}  // namespace onestep::train
