#pragma once
// Learning-rate schedules: pure functions of the step.
#include <cstdint>
#include <string>

namespace onestep::optim {

/// The learning rate over the steps; lr is its peak.
struct ScheduleConfig {
  std::string kind = "constant";  ///< constant, linear, cosine, wsd, step
  int64_t warmup_steps = 0;
  int64_t decay_steps = 0;  ///< train.steps unless given, at least warmup_steps and decay_start
  int64_t decay_start = 0;  ///< wsd: nine tenths of decay_steps unless given
  double min_lr = 0.0;
  int64_t step_size = 1000;  ///< step
  double gamma = 0.1;        ///< step
  bool operator==(const ScheduleConfig&) const = default;
};

/// The learning rate of update `step` (0 first): lr (step + 1) / (warmup_steps + 1) while warming up, then
/// - constant: `lr`;
/// - linear, cosine: down to `min_lr` at `decay_steps`, in a straight line or along half a cosine (nanoGPT's get_lr);
/// - wsd: `lr` until `decay_start`, then in a straight line to `min_lr` at `decay_steps` (Hu et al. 2024);
/// - step: lr gamma^floor((step - warmup_steps) / step_size) (torch.optim.lr_scheduler.StepLR).
double learning_rate(const ScheduleConfig& schedule, double lr, int64_t step);

}  // namespace onestep::optim
