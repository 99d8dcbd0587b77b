#include "autograd/memory.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "autograd/kernels/aligned_block.h"
#include "base/error.h"

namespace onestep::memory {
namespace {

constexpr size_t kAlignment = 64;

// Under AddressSanitizer every block comes from the system with its exact size, so that an overrun is seen.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCache = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kCache = false;
#else
constexpr bool kCache = true;
#endif
#else
constexpr bool kCache = true;
#endif

/// A lock held for nanoseconds, by one thread nearly always: half the price of std::mutex, which an op on four numbers pays a
/// dozen times.
class SpinLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

/// Small blocks are cut from slabs of one huge page, which are kept: neighbours in a graph are neighbours in memory.
constexpr size_t kSmall = 1024;

struct Cache {
  SpinLock mutex;
  std::array<std::vector<void*>, 4 * 58 + 1> free_blocks;
  std::byte* slab = nullptr;
  size_t slab_left = 0;
  Stats stats;
};
// Never destroyed: tensors with static storage duration may be freed after any destructor of ours has run.
union Undestroyed {
  Cache cache;
  constexpr Undestroyed() : cache{} {}
  ~Undestroyed() {}  // NOLINT(modernize-use-equals-default): a defaulted one would be deleted
};
// There when the program is loaded, and needing no memory then.
constinit Undestroyed undestroyed;

Cache& cache() { return undestroyed.cache; }

// fork() waits for the lock: the child would have it held by a thread that it has not.
[[maybe_unused]] const int forks =
    ::pthread_atfork([] { cache().mutex.lock(); }, [] { cache().mutex.unlock(); }, [] { cache().mutex.unlock(); });

/// Gives the system the free blocks above 1 KiB. The caller holds the lock.
void release(Cache& c) noexcept {
  for (size_t index = size_class(kSmall).index + 1; index < c.free_blocks.size(); ++index) {  // smaller ones are parts of slabs
    for (void* block : c.free_blocks[index]) std::free(block);
    c.free_blocks[index].clear();
  }
}

void* system_allocate(Cache& c, size_t bytes) {
  if (void* const block = kernels::aligned_block(bytes)) return block;
  release(c);
  return kernels::required_block(bytes);
}

void* new_block(Cache& c, size_t bytes) {
  if (!kCache || bytes > kSmall) {
    ++c.stats.system_allocations;
    return system_allocate(c, bytes);
  }
  if (c.slab_left < bytes) {
    c.slab = static_cast<std::byte*>(system_allocate(c, kernels::kHugePage));
    c.slab_left = kernels::kHugePage;
    ++c.stats.system_allocations;
  }
  void* const block = c.slab;
  const size_t step = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  c.slab += step;
  c.slab_left -= step;
  return block;
}

}  // namespace

void* allocate(uint64_t bytes) {
  constexpr uint64_t kMost = uint64_t{1} << (sizeof(size_t) == 8 ? 60 : 31);
  ONESTEP_CHECK(Error, bytes < kMost, "memory: a block of ", bytes, " bytes is too large");
  const auto size = static_cast<size_t>(bytes);
  return allocate(size, size_class(size));
}

void* allocate(size_t bytes, SizeClass size) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  void* block = nullptr;
  auto& free = c.free_blocks[size.index];
  if (!free.empty()) {
    block = free.back();
    free.pop_back();
  } else {
    block = new_block(c, kCache ? size.bytes : std::max<size_t>(bytes, 1));
  }
  c.stats.live_bytes += static_cast<int64_t>(size.bytes);
  c.stats.peak_bytes = std::max(c.stats.peak_bytes, c.stats.live_bytes);
  return block;
}

void deallocate(void* block, size_t bytes) noexcept { deallocate(block, size_class(bytes)); }

void deallocate(void* block, SizeClass size) noexcept {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  c.stats.live_bytes -= static_cast<int64_t>(size.bytes);
  try {
    if (kCache) return c.free_blocks[size.index].push_back(block);
  } catch (const std::bad_alloc&) {    // the list cannot grow
    if (size.bytes <= kSmall) return;  // a part of a slab, which is lost
  }
  std::free(block);
}

void release_cached() noexcept {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  release(c);
}

Stats stats() noexcept {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  return c.stats;
}

void reset_peak() noexcept {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  c.stats.peak_bytes = c.stats.live_bytes;
}

}  // namespace onestep::memory
