#pragma once
// The threads of parallel regions: the one that opens a region and the workers that help it.
#include <array>
#include <atomic>
#include <cstdint>

namespace onestep::kernels {

/// A call f(chunk, thread) without the type of f.
struct Task {
  void (*call)(const void* f, int64_t chunk, int thread) noexcept;
  const void* f;
  void operator()(int64_t chunk, int thread) const { call(f, chunk, thread); }
};

/// Helps one region at a time. A worker that is late (asleep, or its core taken by another program) is not waited for: the
/// others take its chunks, and only a chunk that has been begun must be finished by the one who did. Idle threads stay awake
/// for a bounded time, then sleep.
class ThreadTeam {
 public:
  static constexpr int kMostThreads = 1024;

  /// That of the process; a forked child has a new one. Never destroyed: its workers may outlive any static object.
  static ThreadTeam& instance();

  /// Calls task(chunk, thread) once for each chunk < n, thread < threads being the one that does it. While another thread has a
  /// region open the caller does everything, as it does where the system starts no more threads.
  void run(int threads, int64_t n, Task task);

  /// For tests: from now on `choose` says how many of a region's threads are there in time; null: the machine does.
  void choose_threads(int (*choose)(int all)) { choose_ = choose; }

 private:
  /// The chunks [next, end) that are left of a thread's share: its own before anybody else's, so that in one region after the
  /// other a thread finds the same part of the data in its cache.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void share_out(int threads, int64_t n);
  void start_workers(int wanted);
  void serve(int id) noexcept;
  bool join(uint32_t& last_region) noexcept;
  void leave() noexcept;
  void work(int thread) noexcept;
  void open() noexcept;
  void close() noexcept;

  std::atomic<bool> taken_{false};
  std::array<Share, kMostThreads> shares_;
  Task task_{};
  bool bf16_in_tiles_ = false;  // of the thread that opened the region
  int threads_ = 0;             // of the open region
  int (*choose_)(int all) = nullptr;
  int workers_ = 0;  // that have been started
  // Bits 0 to 11: workers inside the region; bit 12: it is open to more; above: which region it is.
  alignas(64) std::atomic<uint32_t> gate_{0};
};

/// Whether the calling thread is inside a parallel region.
bool in_parallel_region();

}  // namespace onestep::kernels
