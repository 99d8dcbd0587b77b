#include "optim/schedule.h"

#include <numbers>

#include "autograd/portable_math.h"
#include "base/enum_names.h"
#include "base/error.h"

namespace onestep::optim {
namespace {

/// The share of the way from `begin` to `end` that is done at `step`.
double progress(int64_t step, int64_t begin, int64_t end) {
  return static_cast<double>(step - begin) / static_cast<double>(end - begin);
}

/// How much of lr - min_lr is left at a step between warm-up and the end of the decay.
double rest(const ScheduleConfig& schedule, int64_t step) {
  if (schedule.kind == ScheduleKind::wsd)
    return step < schedule.decay_start ? 1 : 1 - progress(step, schedule.decay_start, schedule.decay_steps);
  const double done = progress(step, schedule.warmup_steps, schedule.decay_steps);
  return schedule.kind == ScheduleKind::linear ? 1 - done : 0.5 * (1 + portable::cos(std::numbers::pi * done));
}

void check_decay(const ScheduleConfig& schedule) {
  ONESTEP_CHECK(ConfigError, schedule.decay_steps > 0, "schedule: ", name_of(schedule.kind),
                " needs decay_steps of at least 1: got ", schedule.decay_steps);
  ONESTEP_CHECK(
      ConfigError,
      schedule.kind != ScheduleKind::wsd || (schedule.decay_start >= 0 && schedule.decay_start <= schedule.decay_steps),
      "schedule: wsd needs decay_start from 0 to decay_steps = ", schedule.decay_steps, ": got ", schedule.decay_start);
}

}  // namespace

double learning_rate(const ScheduleConfig& schedule, double lr, int64_t step) {
  const int64_t warmup = schedule.warmup_steps;
  const bool decays = schedule.kind != ScheduleKind::constant && schedule.kind != ScheduleKind::step;
  if (decays) check_decay(schedule);
  if (step < warmup) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  if (schedule.kind == ScheduleKind::constant) return lr;
  if (schedule.kind == ScheduleKind::step) return lr * portable::pown(schedule.gamma, (step - warmup) / schedule.step_size);
  if (step >= schedule.decay_steps) return schedule.min_lr;
  return schedule.min_lr + rest(schedule, step) * (lr - schedule.min_lr);
}

}  // namespace onestep::optim
