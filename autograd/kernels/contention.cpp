#include "autograd/kernels/contention.h"

#include <algorithm>
#include <cmath>

namespace onestep::kernels {
namespace {

constexpr double kUndisturbed = 0.95;  // of a window, in the one thread that opens the regions
constexpr double kFree = 0.85;         // of what all threads could have, who also wait for each other
// How much more of the cores fewer threads must come to: on one core the same work takes up to a fifth more time, as it has
// that core's caches alone.
constexpr double kClearlyMore = 1.25;
constexpr int kWindowsInUse = 16;

/// The last eight windows of a setting count for most.
double smoothed(double before, double rate) { return before == 0 ? rate : before + (rate - before) / 8; }

}  // namespace

void Contention::end_quiet_window(double running) { metering_ = running < kUndisturbed; }

void Contention::charge(int threads, int all, double wall, double cpu) {
  wall_ += wall;
  asked_ += wall * threads;
  worked_ += cpu;
  all_ = std::max(all_, all);
  if (wall_ >= kWindow) end_window();
}

void Contention::end_window() {
  const double rate = worked_ / asked_ * threads(all_);
  const int all = all_;
  wall_ = asked_ = worked_ = 0;
  all_ = 1;
  if (!reduced_ && rate > kFree * all) {
    *this = {};
    return;
  }
  double& known = reduced_ ? rate_few_ : rate_all_;
  known = smoothed(known, rate);
  reduced_ = rate_few_ > kClearlyMore * rate_all_;
  if (--windows_left_ < 0) begin_trial(all);
}

void Contention::begin_trial(int all) {
  windows_left_ = kWindowsInUse;
  if (!reduced_) {
    const int few = std::max(1, static_cast<int>(std::ceil(kClearlyMore * rate_all_)));  // cannot come to more cores
    if (few >= all) return;
    if (few != few_) rate_few_ = 0;
    few_ = few;
  }
  reduced_ = !reduced_;
}

}  // namespace onestep::kernels
