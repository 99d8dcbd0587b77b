#include "autograd/kernels/contention.h"

#include <doctest/doctest.h>

namespace onestep::kernels {
namespace {

/// Of 400 windows on a machine of `cores` cores: those in which fewer threads than `cores` were used. `had(n)` is the number of
/// cores that n threads come to.
template <class F>
int reduced_windows(Contention& contention, int cores, F had) {
  int reduced = 0;
  for (int window = 0; window < 400; ++window) {
    if (!contention.metering()) {
      contention.end_quiet_window(had(cores) / cores);
      continue;
    }
    const int threads = contention.threads(cores);
    reduced += threads < cores;
    contention.charge(threads, cores, Contention::kWindow, Contention::kWindow * had(threads));
  }
  return reduced;
}

TEST_CASE("contention: free cores are all used, and nothing is metered") {
  Contention contention;
  CHECK(reduced_windows(contention, 2, [](int n) { return 0.97 * n; }) == 0);
  CHECK_FALSE(contention.metering());
  CHECK(contention.threads(2) == 2);
}

TEST_CASE("contention: threads that hinder each other become fewer until the cores are free again") {
  Contention contention;
  CHECK(reduced_windows(contention, 2, [](int n) { return n == 1 ? 0.9 : 0.4; }) > 360);
  CHECK(contention.threads(8) == 1);
  reduced_windows(contention, 2, [](int n) { return 0.97 * n; });
  CHECK_FALSE(contention.metering());
  CHECK(contention.threads(2) == 2);

  CHECK(reduced_windows(contention, 8, [](int n) { return n > 4 ? 3.1 : n; }) > 360);
  CHECK(contention.threads(8) == 4);
}

TEST_CASE("contention: all threads stay where fewer do not get clearly more") {
  Contention taken;  // two other programs on two cores
  CHECK(reduced_windows(taken, 2, [](int n) { return n == 1 ? 0.55 : 0.6; }) < 40);
  Contention shared;
  CHECK(reduced_windows(shared, 2, [](int n) { return n == 1 ? 0.9 : 1.3; }) == 0);  // one thread gets no more than one core
  CHECK(shared.metering());
}

TEST_CASE("contention: one odd window changes nothing for long") {
  Contention contention;
  int window = 0;
  const auto had = [&window](int n) { return n == 1 ? (++window % 4 == 0 ? 1.0 : 0.5) : 0.55; };
  CHECK(reduced_windows(contention, 2, had) < 100);
}

}  // namespace
}  // namespace onestep::kernels
