#pragma once
// Learning-rate schedules: pure functions of the step.
#include <cstdint>

#include "train/config.h"

namespace onestep::train {

/// The learning rate of update `step` (0 first): lr (step + 1) / (warmup_steps + 1) while warming up, then
/// - constant: `lr`;
/// - linear, cosine: down to `min_lr` at `decay_steps`, in a straight line or along half a cosine (nanoGPT's get_lr);
/// - wsd: `lr` until `decay_start`, then in a straight line to `min_lr` at `decay_steps` (Hu et al. 2024);
/// - step: lr gamma^floor((step - warmup_steps) / step_size) (torch.optim.lr_scheduler.StepLR).
double learning_rate(const ScheduleConfig& schedule, double lr, int64_t step);

}  // namespace onestep::train
