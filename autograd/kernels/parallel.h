#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <type_traits>

#include "autograd/kernels/thread_team.h"

namespace onestep::kernels {

/// Threads a parallel region uses: `OMP_NUM_THREADS` if set, else the number of physical cores this process may run on.
int num_threads();

/// Whether `OMP_NUM_THREADS` or set_num_threads() has said how many.
bool num_threads_is_set();

/// Sets the number of threads. Throws ConfigError unless 1 <= n <= 1024 and the system lets so many run.
void set_num_threads(int n);

/// Work (in rough nanoseconds) below which a second thread costs more than it brings: starting a parallel region takes 1 us
/// while the threads still spin, 35 us once they sleep. 6000 but in tests, which set 0 so that small tensors are split, too.
double min_work_per_thread();
void set_min_work_per_thread(double nanoseconds);

/// Threads worth using for `work` nanoseconds that split into at most `pieces`; 1 inside a parallel region.
inline int threads_for(int64_t pieces, double work) {
  const double least = min_work_per_thread();
  if (pieces < 2 || work < 2 * least || in_parallel_region()) return 1;
  int64_t threads = num_threads();
  if (threads > pieces) threads = pieces;
  if (work < static_cast<double>(threads) * least) threads = static_cast<int64_t>(work / least);
  return static_cast<int>(threads);
}

/// The first exception that a thread of a parallel region throws, for the one that opened the region.
class RegionError {
 public:
  /// Calls f().
  template <class F>
  void keep(const F& f) noexcept {
    try {
      f();
    } catch (...) {
      store();
    }
  }
  /// After the region.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  void store() noexcept;

  std::atomic_flag stored_;
  std::exception_ptr first_;
};

/// Calls f(i, t) for i < n in any order, with t < threads the thread that does it, each piece once: a thread begins with those
/// of its own share and continues with those that others have not begun. Where f throws, so does this, after the other pieces.
template <class F>
void parallel_pieces(int threads, int64_t n, const F& f) {
  if (threads == 1) {
    for (int64_t i = 0; i < n; ++i) f(i, 0);
    return;
  }
  RegionError error;
  const auto piece = [&](int64_t i, int t) { error.keep([&] { f(i, t); }); };
  ThreadTeam::instance().run(
      threads, n, {[](const void* p, int64_t i, int t) noexcept { (*static_cast<decltype(&piece)>(p))(i, t); }, &piece});
  error.rethrow();
}

/// f(begin, end), compiled once for all the ways in which parallel_for comes to it. A copy of f is in registers, where what f
/// writes cannot change it.
template <class F>
[[gnu::noinline]] void call_range(const void* f, int64_t begin, int64_t end) {
  if constexpr (std::is_trivially_copyable_v<F>) {
    const F copy = *static_cast<const F*>(f);
    copy(begin, end);
  } else {
    (*static_cast<const F*>(f))(begin, end);
  }
}

/// The ranges of parallel_for for several threads.
void parallel_ranges(int64_t n, double work, int threads, const void* f,
                     void (*call)(const void* f, int64_t begin, int64_t end));

/// Calls f(begin, end) on disjoint ranges that cover [0, n); `cost` is the rough nanoseconds one item takes. What `f` writes
/// for one item may not depend on the others: then the split cannot change a bit. Where it throws, so does this, after the
/// others.
template <class F>
void parallel_for(int64_t n, double cost, const F& f) {
  const double work = cost * static_cast<double>(n);
  const int threads = threads_for(n, work);
  if (threads > 1)
    parallel_ranges(n, work, threads, &f, call_range<F>);
  else if (n > 0)
    call_range<F>(&f, 0, n);
}

}  // namespace onestep::kernels
