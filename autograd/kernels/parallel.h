#pragma once

#include <omp.h>

#include <atomic>
#include <cstdint>
#include <exception>

namespace onestep::kernels {

/// Threads a parallel region uses: `OMP_NUM_THREADS` if set, else the number of physical cores this process may run on.
int num_threads();

/// Whether `OMP_NUM_THREADS` or set_num_threads() has said how many.
bool num_threads_is_set();

/// Sets the number of threads. Throws ConfigError unless 1 <= n <= 1024 and the system lets so many run.
void set_num_threads(int n);

/// Work (in rough nanoseconds) below which a second thread costs more than it brings: starting a parallel region takes 1 us
/// while the threads still spin, 35 us once they sleep. 16000 but in tests, which set 0 so that small tensors are split, too.
double min_work_per_thread();
void set_min_work_per_thread(double nanoseconds);

/// Threads worth using for `work` nanoseconds that split into at most `pieces`; 1 inside a parallel region.
inline int threads_for(int64_t pieces, double work) {
  const double least = min_work_per_thread();
  if (pieces < 2 || work < 2 * least || omp_in_parallel()) return 1;
  int64_t threads = num_threads();
  if (threads > pieces) threads = pieces;
  if (work < static_cast<double>(threads) * least) threads = static_cast<int64_t>(work / least);
  return static_cast<int>(threads);
}

/// The first exception that a thread of a parallel region throws, for the one that opened the region: OpenMP ends the program
/// where an exception leaves a region.
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

/// Calls f(begin, end) on disjoint ranges that cover [0, n); `cost` is the rough nanoseconds one item takes. What `f` writes
/// for one item may not depend on the others: then the split cannot change a bit. Where it throws, so does this, after the
/// others.
template <class F>
void parallel_for(int64_t n, double cost, const F& f) {
  const int threads = threads_for(n, cost * static_cast<double>(n));
  if (threads == 1) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  RegionError error;
#pragma omp parallel num_threads(threads)
  {
    // The team may be smaller than asked for.
    const int64_t team = omp_get_num_threads(), t = omp_get_thread_num();
    const int64_t begin = n * t / team, end = n * (t + 1) / team;
    if (begin < end) error.keep([&] { f(begin, end); });
  }
  error.rethrow();
}

/// Calls f(i, t) for i < n in any order, with t < threads the thread that does it: a thread takes the next piece when it is
/// done with one, so that a core that another program uses as well does fewer. For few large pieces; else as parallel_for.
template <class F>
void parallel_pieces(int threads, int64_t n, const F& f) {
  if (threads == 1) {
    for (int64_t i = 0; i < n; ++i) f(i, 0);
    return;
  }
  RegionError error;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t i = 0; i < n; ++i) error.keep([&] { f(i, omp_get_thread_num()); });
  error.rethrow();
}

}  // namespace onestep::kernels
