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
#include "autograd/regions.h"
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
constexpr size_t kSmallClasses = size_class(kSmall).index + 1;

/// Blocks from kLeastCut on are cut from regions. Free ones of up to kMostKept are kept for their class; larger ones have
/// regions of their own, where a free block is joined with its neighbours at once: activations lie where gradients will be.
constexpr size_t kLeastCut = size_t{16} << 10, kMostKept = size_t{256} << 10;

/// How many blocks move between a thread's cache and the shared one at a time; a thread keeps up to twice as many of each
/// class.
constexpr size_t kBatch = 32;

/// Small blocks that one thread has to itself, so that it needs no lock.
struct ThreadCache {
  struct Class {
    std::array<void*, 2 * kBatch> blocks = {};
    size_t held = 0;
    size_t most = 0;  ///< None before its thread has entered the shared cache.
  };
  std::array<Class, kSmallClasses> classes = {};
  std::atomic<int64_t> live_bytes{0};  ///< Since the shared cache was last told; written by its thread alone.
  int64_t peak_bytes = 0;              ///< The most that live_bytes was since then.
  bool in_use = true;                  ///< False after its thread has ended.

  void count(int64_t bytes) {
    const int64_t live = live_bytes.load(std::memory_order_relaxed) + bytes;
    live_bytes.store(live, std::memory_order_relaxed);
    peak_bytes = std::max(peak_bytes, live);
  }
};
constinit ThreadCache no_cache;  // of a thread that has not entered yet or has left: without blocks and without room
constinit thread_local ThreadCache* own = &no_cache;

struct Cache {
  SpinLock mutex;
  std::array<std::vector<void*>, 4 * 58 + 1> free_blocks;
  std::byte* slab = nullptr;
  size_t slab_left = 0;
  Regions regions{size_t{64} << 20}, large_regions{size_t{1} << 30};
  Stats stats;
  std::vector<ThreadCache*> threads;
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

bool is_small(SizeClass size) { return size.index < kSmallClasses; }
bool is_cut(size_t index) { return kHasHugePages && size_class(kLeastCut).index <= index; }
bool is_large(size_t index) { return is_cut(index) && size_class(kMostKept).index < index; }

/// The class of a block, and as its bytes what it takes. Those are the pages of a large one, not the bytes of its class: once
/// free it is joined with its neighbours, so it need not fit the next of its class.
SizeClass taken(size_t bytes) {
  constexpr size_t kPage = 4096;
  const SizeClass size = size_class(bytes);
  return is_large(size.index) ? SizeClass{size.index, (bytes + kPage - 1) / kPage * kPage} : size;
}

/// What a small block takes of a slab.
size_t slab_step(SizeClass size) { return (size.bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Puts the blocks that nobody uses back where they were cut.
void put_back_free_blocks(Cache& c) noexcept {
  for (size_t index = kSmallClasses; index < c.free_blocks.size(); ++index) {
    auto& blocks = c.free_blocks[index];
    if (!is_cut(index)) continue;
    for (void* block : blocks) c.regions.put_back({static_cast<std::byte*>(block), class_bytes(index)});
    blocks.clear();
  }
}

/// Gives the system the free blocks above 1 KiB: smaller ones are parts of slabs. The caller holds the lock, as it does in all
/// that takes the cache.
void release(Cache& c) noexcept {
  for (size_t index = kSmallClasses; index < c.free_blocks.size(); ++index) {
    if (is_cut(index)) continue;
    for (void* block : c.free_blocks[index]) std::free(block);
    c.free_blocks[index].clear();
  }
  if (!kHasHugePages) return;
  put_back_free_blocks(c);
  c.regions.release();
  c.large_regions.release();
}

void* system_allocate(Cache& c, size_t bytes) {
  ++c.stats.system_allocations;
  if (void* const block = kernels::aligned_block(bytes)) return block;
  release(c);
  return kernels::required_block(bytes);
}

/// A small block that nobody had yet.
void* cut_from_slab(Cache& c, SizeClass size) {
  if (c.slab_left < slab_step(size)) {
    c.slab = static_cast<std::byte*>(system_allocate(c, kernels::kHugePage));
    c.slab_left = kernels::kHugePage;
  }
  void* const block = c.slab;
  c.slab += slab_step(size);
  c.slab_left -= slab_step(size);
  return block;
}

/// One that is cut from a region.
void* cut_from_region(Cache& c, SizeClass size) try {
  Regions& regions = is_large(size.index) ? c.large_regions : c.regions;
  if (void* const block = regions.cut(size.bytes)) return block;
  ++c.stats.system_allocations;
  if (!regions.grow(size.bytes)) {
    put_back_free_blocks(c);
    if (void* const block = regions.cut(size.bytes)) return block;
    release(c);
    if (!regions.grow(size.bytes)) kernels::fail_without_block(size.bytes);
  }
  return regions.cut(size.bytes);
} catch (const std::bad_alloc&) {
  kernels::fail_without_block(size.bytes);
}

/// A block of a class, of `bytes` bytes at least where there is no cache.
void* take(Cache& c, size_t bytes, SizeClass size) {
  auto& free = c.free_blocks[size.index];
  if (!kCache) return system_allocate(c, std::max<size_t>(bytes, 1));
  if (free.empty() && is_small(size)) return cut_from_slab(c, size);
  if (free.empty()) return is_cut(size.index) ? cut_from_region(c, size) : system_allocate(c, size.bytes);
  void* const block = free.back();
  free.pop_back();
  return block;
}

void put(Cache& c, void* block, SizeClass size) noexcept {
  const Span span = {static_cast<std::byte*>(block), size.bytes};
  if (kCache && is_large(size.index)) return c.large_regions.put_back(span);
  try {
    if (kCache) return c.free_blocks[size.index].push_back(block);
  } catch (const std::bad_alloc&) {  // the list cannot grow
    if (is_cut(size.index)) return c.regions.put_back(span);
    if (is_small(size)) return;  // a part of a slab, which is lost
  }
  std::free(block);
}

/// Adds `bytes`, and what the calling thread has counted by itself, to the bytes in use. The peak is exact while one thread
/// allocates; of others it lacks what they have not told yet, less than their caches hold.
void count(Cache& c, int64_t bytes) noexcept {
  int64_t others = 0;
  for (const ThreadCache* thread : c.threads) others += thread->live_bytes.load(std::memory_order_relaxed);
  const int64_t mine = own->live_bytes.load(std::memory_order_relaxed);
  others -= mine;
  c.stats.peak_bytes = std::max(c.stats.peak_bytes, c.stats.live_bytes + others + own->peak_bytes);
  c.stats.live_bytes += mine + bytes;
  c.stats.peak_bytes = std::max(c.stats.peak_bytes, c.stats.live_bytes + others);
  if (own == &no_cache) return;
  own->live_bytes.store(0, std::memory_order_relaxed);
  own->peak_bytes = 0;
}

/// Moves a batch of blocks of a class, as far as there are any, to the calling thread's cache, the next one on top.
void fetch(Cache& c, SizeClass size) {
  ThreadCache::Class& mine = own->classes[size.index];
  const size_t n = std::min({kBatch, mine.most - mine.held, c.free_blocks[size.index].size() + c.slab_left / slab_step(size)});
  mine.held += n;
  for (size_t i = 1; i <= n; ++i) mine.blocks[mine.held - i] = take(c, size.bytes, size);
}

/// Moves up to `n` blocks of a class, those that were unused for longest, from the calling thread's cache to the shared one.
void give_back(Cache& c, SizeClass size, size_t n) noexcept {
  ThreadCache::Class& mine = own->classes[size.index];
  n = std::min(n, mine.held);
  for (size_t i = 0; i < n; ++i) put(c, mine.blocks[i], size);
  std::copy(mine.blocks.begin() + n, mine.blocks.begin() + mine.held, mine.blocks.begin());
  mine.held -= n;
}

/// Gives the calling thread a cache of its own until it ends.
class Entered {
 public:
  explicit Entered(std::vector<ThreadCache*>& threads) noexcept {
    auto place = std::find_if(threads.begin(), threads.end(), [](const ThreadCache* t) { return !t->in_use; });
    try {
      if (place == threads.end()) place = threads.insert(place, new ThreadCache);
    } catch (const std::bad_alloc&) {
      return;  // it does without
    }
    own = *place;
    own->in_use = true;
    for (ThreadCache::Class& c : own->classes) c.most = c.blocks.size();
  }
  ~Entered() {
    if (own == &no_cache) return;
    Cache& c = cache();
    const std::lock_guard lock(c.mutex);
    for (size_t index = 0; index < kSmallClasses; ++index) give_back(c, {index, 0}, 2 * kBatch);
    count(c, 0);
    own->in_use = false;
    own = &no_cache;
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
};

/// The shared cache, whose lock the caller holds; the calling thread has a part of its own from now on.
Cache& entered() noexcept {
  Cache& c = cache();
  if (kCache) thread_local const Entered here(c.threads);
  return c;
}

// Not inlined, so that the way of nearly all small blocks saves no registers for this one.
[[gnu::noinline]] void* allocate_shared(size_t bytes, SizeClass size) {
  const std::lock_guard lock(cache().mutex);
  Cache& c = entered();
  void* const block = take(c, bytes, size);
  if (is_small(size)) fetch(c, size);
  count(c, static_cast<int64_t>(size.bytes));
  return block;
}

[[gnu::noinline]] void deallocate_shared(void* block, SizeClass size) noexcept {
  const std::lock_guard lock(cache().mutex);
  Cache& c = entered();
  if (is_small(size)) give_back(c, size, kBatch);
  put(c, block, size);
  count(c, -static_cast<int64_t>(size.bytes));
}

}  // namespace

void* allocate(uint64_t bytes) {
  constexpr uint64_t kMost = uint64_t{1} << (sizeof(size_t) == 8 ? 60 : 31);
  ONESTEP_CHECK(Error, bytes < kMost, "memory: a block of ", bytes, " bytes is too large");
  const auto size = static_cast<size_t>(bytes);
  return allocate(size, taken(size));
}

void* allocate(size_t bytes, SizeClass size) {
  ThreadCache& mine = *own;
  if (!is_small(size) || mine.classes[size.index].held == 0) return allocate_shared(bytes, size);
  mine.count(static_cast<int64_t>(size.bytes));
  return mine.classes[size.index].blocks[--mine.classes[size.index].held];
}

void deallocate(void* block, size_t bytes) noexcept { deallocate(block, taken(bytes)); }

void deallocate(void* block, SizeClass size) noexcept {
  ThreadCache& mine = *own;
  if (!is_small(size) || mine.classes[size.index].held == mine.classes[size.index].most) return deallocate_shared(block, size);
  mine.count(-static_cast<int64_t>(size.bytes));
  mine.classes[size.index].blocks[mine.classes[size.index].held++] = block;
}

void release_cached() noexcept {
  const std::lock_guard lock(cache().mutex);
  release(cache());
}

Stats stats() noexcept {
  const std::lock_guard lock(cache().mutex);
  Cache& c = cache();
  count(c, 0);
  Stats all = c.stats;
  for (const ThreadCache* thread : c.threads) all.live_bytes += thread->live_bytes.load(std::memory_order_relaxed);
  return all;
}

void reset_peak() noexcept {
  const std::lock_guard lock(cache().mutex);
  Cache& c = cache();
  count(c, 0);
  c.stats.peak_bytes = 0;
  count(c, 0);
}

}  // namespace onestep::memory
