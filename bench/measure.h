#pragma once
// Timing on a shared machine: contestants take turns, and medians count.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace onestep::bench {

/// Seconds of one call, out of `calls`.
inline double seconds_per_call(const std::function<void()>& call, int calls) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(Clock::now() - start).count() / calls;
}

inline double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

/// How long one call takes, out of `reps`.
struct Timing {
  double median_ms = 0, min_ms = 0, p90_ms = 0;
  int64_t reps = 0;
};

/// How often and how long a call is timed: until both `min_reps` and `seconds` are reached, but at most `max_reps` times.
struct Effort {
  int64_t warmup = 3, min_reps = 5, max_reps = 100'000;
  double seconds = 2;
};

/// Times each call by itself.
inline Timing time_calls(const std::function<void()>& call, const Effort& effort) {
  for (int64_t i = 0; i < effort.warmup; ++i) call();
  std::vector<double> ms;
  double total = 0;
  while (std::ssize(ms) < effort.max_reps && (std::ssize(ms) < effort.min_reps || total < 1e3 * effort.seconds)) {
    ms.push_back(1e3 * seconds_per_call(call, 1));
    total += ms.back();
  }
  std::sort(ms.begin(), ms.end());
  return {median(ms), ms.front(), ms[(ms.size() - 1) * 9 / 10], std::ssize(ms)};
}

/// Median seconds of each contestant, which take turns. The pause lets the spinning threads of the one before fall asleep.
inline std::vector<double> take_turns(const std::vector<std::function<void()>>& contestants, int calls, int rounds) {
  std::vector<std::vector<double>> seconds(contestants.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < contestants.size(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      seconds_per_call(contestants[i], (calls + 1) / 2);  // warm-up: its threads wake and get cores of their own
      seconds[i].push_back(seconds_per_call(contestants[i], calls));
    }
  }
  std::vector<double> medians;
  for (const auto& s : seconds) medians.push_back(median(s));
  return medians;
}

}  // namespace onestep::bench
