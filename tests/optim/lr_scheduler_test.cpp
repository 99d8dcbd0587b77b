// Learning-rate schedulers against the values of torch.optim.lr_scheduler 2.13 (lr 0.8; StepLR(2, 0.5), ExponentialLR(0.9),
// LinearLR(0.5, 1, 4), CosineAnnealingLR(4, 0.1), LambdaLR(1 / (t + 1)); get_last_lr() before step t).
#include "optim/lr_scheduler.h"

#include <doctest/doctest.h>

#include <vector>

#include "autograd/ops.h"

namespace onestep::optim {
namespace {

/// The rates of seven steps.
template <class Scheduler, class... A>
std::vector<double> rates(A... arguments) {
  SGD sgd({ones({1}).requires_grad_()}, {.lr = 0.8});
  Scheduler scheduler(sgd, arguments...);
  std::vector<double> all;
  for (int i = 0; i < 7; ++i, scheduler.step()) {
    CHECK(scheduler.get_last_lr() == sgd.lr());
    all.push_back(sgd.lr());
  }
  return all;
}

void check_rates(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-12));
}

}  // namespace

TEST_CASE("lr_scheduler: the rates are PyTorch's") {
  check_rates(rates<lr_scheduler::StepLR>(2, 0.5), {0.8, 0.8, 0.4, 0.4, 0.2, 0.2, 0.1});
  check_rates(rates<lr_scheduler::ExponentialLR>(0.9), {0.8, 0.72, 0.648, 0.5832, 0.52488, 0.472392, 0.4251528});
  check_rates(rates<lr_scheduler::LinearLR>(0.5, 1.0, 4), {0.4, 0.5, 0.6, 0.7, 0.8, 0.8, 0.8});
  check_rates(rates<lr_scheduler::CosineAnnealingLR>(4, 0.1),
              {0.8, 0.697487373415292, 0.45, 0.202512626584708, 0.1, 0.202512626584708, 0.45});
  check_rates(rates<lr_scheduler::LambdaLR>([](int64_t t) { return 1.0 / static_cast<double>(t + 1); }),
              {0.8, 0.4, 0.8 / 3, 0.2, 0.16, 0.8 / 6, 0.8 / 7});
}

TEST_CASE("lr_scheduler: a schedule with its warm-up is one") {
  const ScheduleConfig schedule{.kind = ScheduleKind::linear, .warmup_steps = 1, .decay_steps = 5, .min_lr = 0.4};
  check_rates(rates<lr_scheduler::Scheduled>(schedule), {0.4, 0.8, 0.7, 0.6, 0.5, 0.4, 0.4});
}

}  // namespace onestep::optim
