#pragma once
// Learning-rate schedules: pure functions of the step.
#include <array>
#include <cstdint>
#include <string_view>

namespace onestep::optim {

enum class ScheduleKind : uint8_t { constant, linear, cosine, wsd, step };
constexpr auto names(ScheduleKind /*all*/) {
  return std::to_array<std::string_view>({"constant", "linear", "cosine", "wsd", "step"});
}

/// The learning rate over the steps; lr is its peak.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::constant;
  int64_t warmup_steps = 0;
  int64_t decay_steps = 0;   ///< linear, cosine, wsd: must be given (a run's config derives it from train.steps)
  int64_t decay_start = -1;  ///< wsd: must be given (a run's config derives it from decay_steps)
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
/// Throws ConfigError where decay_steps or decay_start is needed and not given, or they are not in order.
double learning_rate(const ScheduleConfig& schedule, double lr, int64_t step);

}  // namespace onestep::optim
