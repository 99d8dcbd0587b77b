#pragma once
// Learning rates that change from step to step, as objects (torch.optim.lr_scheduler).
#include <algorithm>
#include <functional>
#include <numbers>

#include "autograd/portable_math.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace onestep::optim::lr_scheduler {

/// Gives an optimizer, which must outlive it, the learning rate of step 0, and with every step() that of the next one.
class LRScheduler {
 public:
  /// `rate(lr, step)`: the rate of a step, 0 first; lr is the one that the optimizer has now.
  LRScheduler(Optimizer& optimizer, std::function<double(double lr, int64_t step)> rate)
      : optimizer_(optimizer), rate_(std::move(rate)), lr_(optimizer.lr()) {
    optimizer_.set_lr(rate_(lr_, 0));
  }
  /// To be called after optimizer.step().
  void step() { optimizer_.set_lr(rate_(lr_, ++step_)); }
  double get_last_lr() const { return optimizer_.lr(); }

 private:
  Optimizer& optimizer_;
  std::function<double(double, int64_t)> rate_;
  double lr_;
  int64_t step_ = 0;
};

/// lr factor(step)
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor)
      : LRScheduler(optimizer, [f = std::move(factor)](double lr, int64_t step) { return lr * f(step); }) {}
};

/// lr gamma^floor(step / step_size)
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1)
      : LRScheduler(optimizer, [=](double lr, int64_t step) { return lr * portable::pown(gamma, step / step_size); }) {}
};

/// lr gamma^step
class ExponentialLR : public StepLR {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma) : StepLR(optimizer, 1, gamma) {}
};

/// From lr start_factor to lr end_factor in a straight line over total_iters steps, and then on.
class LinearLR : public LRScheduler {
 public:
  LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1.0, int64_t total_iters = 5)
      : LRScheduler(optimizer, [=](double lr, int64_t step) {
          const double done = static_cast<double>(std::min(step, total_iters)) / static_cast<double>(total_iters);
          return lr * (start_factor + (end_factor - start_factor) * done);
        }) {}
};

/// eta_min + (lr - eta_min) (1 + cos(pi step / T_max)) / 2 (Loshchilov and Hutter 2017)
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0.0)
      : LRScheduler(optimizer, [=](double lr, int64_t step) {
          const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(T_max);
          return eta_min + (lr - eta_min) * (1 + portable::cos(angle)) / 2;
        }) {}
};

/// learning_rate() of a schedule, with its warm-up.
class Scheduled : public LRScheduler {
 public:
  Scheduled(Optimizer& optimizer, const ScheduleConfig& schedule)
      : LRScheduler(optimizer, [=](double lr, int64_t step) { return learning_rate(schedule, lr, step); }) {}
};

}  // namespace onestep::optim::lr_scheduler
