#include "optim/schedule.h"

#include <doctest/doctest.h>

#include "base/error.h"

using namespace onestep::optim;
using onestep::ConfigError;

TEST_CASE("schedule: a decay without its steps is refused") {
  const auto rate = [](const ScheduleConfig& schedule) { return learning_rate(schedule, 1.0, 3); };
  CHECK_THROWS_WITH_AS(rate({.kind = ScheduleKind::cosine}), "schedule: cosine needs decay_steps of at least 1: got 0",
                       ConfigError);
  CHECK_THROWS_AS(rate({.kind = ScheduleKind::linear, .warmup_steps = 5}), ConfigError);
  CHECK_THROWS_WITH_AS(rate({.kind = ScheduleKind::wsd, .decay_steps = 9}),
                       "schedule: wsd needs decay_start from 0 to decay_steps = 9: got -1", ConfigError);
  CHECK_THROWS_AS(rate({.kind = ScheduleKind::wsd, .decay_steps = 9, .decay_start = 10}), ConfigError);
}

TEST_CASE("a constant schedule stays, after its warm-up") {
  ScheduleConfig schedule;
  CHECK(learning_rate(schedule, 0.1, 0) == 0.1);
  CHECK(learning_rate(schedule, 0.1, 1000) == 0.1);
  schedule.warmup_steps = 3;
  CHECK(learning_rate(schedule, 0.4, 0) == doctest::Approx(0.1));
  CHECK(learning_rate(schedule, 0.4, 2) == doctest::Approx(0.3));
  CHECK(learning_rate(schedule, 0.4, 3) == 0.4);
}

TEST_CASE("a linear schedule falls in a straight line to min_lr") {
  const ScheduleConfig schedule{.kind = ScheduleKind::linear, .warmup_steps = 0, .decay_steps = 10, .min_lr = 0.1};
  CHECK(learning_rate(schedule, 1.1, 0) == doctest::Approx(1.1));
  CHECK(learning_rate(schedule, 1.1, 5) == doctest::Approx(0.6));
  CHECK(learning_rate(schedule, 1.1, 10) == 0.1);
  CHECK(learning_rate(schedule, 1.1, 11) == 0.1);
}

TEST_CASE("a cosine schedule is nanoGPT's") {
  const ScheduleConfig schedule{.kind = ScheduleKind::cosine, .warmup_steps = 10, .decay_steps = 30, .min_lr = 1e-4};
  CHECK(learning_rate(schedule, 1e-3, 0) == doctest::Approx(1e-3 / 11));
  CHECK(learning_rate(schedule, 1e-3, 9) == doctest::Approx(1e-2 / 11));
  CHECK(learning_rate(schedule, 1e-3, 10) == doctest::Approx(1e-3));
  CHECK(learning_rate(schedule, 1e-3, 20) == doctest::Approx(5.5e-4));
  CHECK(learning_rate(schedule, 1e-3, 30) == 1e-4);
}

TEST_CASE("a wsd schedule is stable and falls in a straight line at the end") {
  const ScheduleConfig schedule{
      .kind = ScheduleKind::wsd, .warmup_steps = 4, .decay_steps = 30, .decay_start = 20, .min_lr = 0.1};
  CHECK(learning_rate(schedule, 1.1, 0) == doctest::Approx(0.22));
  CHECK(learning_rate(schedule, 1.1, 4) == doctest::Approx(1.1));
  CHECK(learning_rate(schedule, 1.1, 20) == doctest::Approx(1.1));
  CHECK(learning_rate(schedule, 1.1, 25) == doctest::Approx(0.6));
  CHECK(learning_rate(schedule, 1.1, 30) == 0.1);
  CHECK(learning_rate({.kind = ScheduleKind::wsd, .decay_steps = 5, .decay_start = 5, .min_lr = 0.1}, 1.0, 5) == 0.1);
}

TEST_CASE("a step schedule is multiplied by gamma every step_size steps after the warm-up") {
  const ScheduleConfig schedule{.kind = ScheduleKind::step, .warmup_steps = 2, .step_size = 10, .gamma = 0.5};
  CHECK(learning_rate(schedule, 0.3, 1) == doctest::Approx(0.2));
  CHECK(learning_rate(schedule, 0.3, 2) == 0.3);
  CHECK(learning_rate(schedule, 0.3, 11) == 0.3);
  CHECK(learning_rate(schedule, 0.3, 12) == 0.15);
  CHECK(learning_rate(schedule, 0.3, 32) == 0.0375);
}
