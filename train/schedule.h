#pragma once
// Learning-rate schedules: pure functions of the step.
#include <cstdint>

#include "train/config.h"

namespace onestep::train {

/// The learning rate of update `step` (0 first): lr (step + 1) / (warmup_steps + 1) while warming up, then from `lr` down to
/// `min_lr` at `decay_steps`, in a straight line or along half a cosine; constant stays at `lr` (nanoGPT's get_lr).
double learning_rate(const ScheduleConfig& schedule, double lr, int64_t step);

}  // namespace onestep::train
