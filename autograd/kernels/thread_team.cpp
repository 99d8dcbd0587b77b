#include "autograd/kernels/thread_team.h"

#include <pthread.h>

#include <chrono>

#include "autograd/kernels/isa.h"

namespace onestep::kernels {
namespace {

constexpr uint32_t kInside = 0xfff, kOpen = 0x1000, kRegion = 0x2000;
constexpr uint32_t region_of(uint32_t gate) { return gate / kRegion; }

// How long a thread that waits stays awake. Waking a sleeping one takes some 35 us and regions of a training step follow each
// other within a few: a worker stays awake between them, and asks nothing of a machine that has other work to do soon after.
constexpr std::chrono::nanoseconds kAwake = std::chrono::microseconds(200);
// The kernels and what they call need less than 64 KiB; the limit of the process may be smaller.
constexpr size_t kStack = size_t{1} << 20;

thread_local bool in_region = false;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until done(value of word) and returns that value: awake at first, then asleep.
template <class Done>
uint32_t wait_until(const std::atomic<uint32_t>& word, std::chrono::nanoseconds awake, Done done) noexcept {
  uint32_t value = word.load(std::memory_order_acquire);
  using Clock = std::chrono::steady_clock;
  Clock::time_point end{};
  while (!done(value)) {
    for (int turn = 0; turn < 16; ++turn) {
      pause();
      value = word.load(std::memory_order_acquire);
      if (done(value)) return value;
    }
    const auto now = Clock::now();
    if (end == Clock::time_point{}) end = now + awake;
    if (now >= end) word.wait(value);
    value = word.load(std::memory_order_acquire);
  }
  return value;
}

// There when the program is loaded: a child forked while another thread makes it would wait for that thread for ever.
constinit ThreadTeam first_team;
constinit std::atomic<ThreadTeam*> team{&first_team};
// A child of fork() has none of its parent's workers.
[[maybe_unused]] const int forks = ::pthread_atfork(nullptr, nullptr, [] { team = new ThreadTeam; });

}  // namespace

bool in_parallel_region() { return in_region; }

ThreadTeam& ThreadTeam::instance() { return *team; }

void ThreadTeam::run(int threads, int64_t n, Task task) {
  if (threads <= 1 || in_region || taken_.exchange(true, std::memory_order_acquire)) {
    for (int64_t chunk = 0; chunk < n; ++chunk) task(chunk, 0);
    return;
  }
  share_out(choose_ != nullptr ? choose_(threads) : threads, n);
  task_ = task;
  bf16_in_tiles_ = bf16_in_tiles();
  in_region = true;
  if (threads_ > 1) open();
  work(0);
  if (threads_ > 1) close();
  in_region = false;
  taken_.store(false, std::memory_order_release);
}

void ThreadTeam::share_out(int threads, int64_t n) {
  start_workers(threads - 1);
  threads_ = threads;
  for (int t = 0; t < threads; ++t) {
    Share& share = shares_[static_cast<size_t>(t)];
    share.next.store(n * t / threads, std::memory_order_relaxed);
    share.end = n * (t + 1) / threads;
  }
}

void ThreadTeam::start_workers(int wanted) {
  if (workers_ >= wanted) return;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  struct Start {
    ThreadTeam* team;
    int id;
  };
  const auto serve = [](void* argument) -> void* {
    const Start start = *static_cast<Start*>(argument);
    delete static_cast<Start*>(argument);
    start.team->serve(start.id);
    return nullptr;
  };
  for (; workers_ < wanted; ++workers_) {
    auto* const start = new Start{this, workers_ + 1};
    pthread_t thread;
    if (::pthread_create(&thread, &attributes, serve, start) != 0) {  // the others do its work
      delete start;
      break;
    }
  }
  pthread_attr_destroy(&attributes);
}

void ThreadTeam::serve(int id) noexcept {
  in_region = true;
  uint32_t last_region = 0;
  for (;;) {
    if (!join(last_region)) continue;
    if (id < threads_) {
      set_bf16_in_tiles(bf16_in_tiles_);
      work(id);
    }
    leave();
  }
}

bool ThreadTeam::join(uint32_t& last_region) noexcept {
  uint32_t gate = wait_until(gate_, kAwake, [&](uint32_t g) { return (g & kOpen) != 0 && region_of(g) != last_region; });
  if (!gate_.compare_exchange_strong(gate, gate + 1, std::memory_order_acq_rel)) return false;
  last_region = region_of(gate);
  return true;
}

void ThreadTeam::leave() noexcept {
  const uint32_t gate = gate_.fetch_sub(1, std::memory_order_acq_rel) - 1;
  if ((gate & (kInside | kOpen)) == 0) gate_.notify_all();
}

void ThreadTeam::work(int thread) noexcept {
  for (int i = 0; i < threads_; ++i) {
    Share& share = shares_[static_cast<size_t>((thread + i) % threads_)];
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      const int64_t chunk = share.next.fetch_add(1, std::memory_order_relaxed);
      if (chunk < share.end) task_(chunk, thread);
    }
  }
}

void ThreadTeam::open() noexcept {
  gate_.store((region_of(gate_.load(std::memory_order_relaxed)) + 1) * kRegion | kOpen);
  gate_.notify_all();
}

void ThreadTeam::close() noexcept {
  gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
  wait_until(gate_, kAwake, [](uint32_t gate) { return (gate & kInside) == 0; });
}

}  // namespace onestep::kernels
