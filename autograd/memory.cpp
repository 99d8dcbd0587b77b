#include "autograd/memory.h"

#include <pthread.h>
#include <sys/mman.h>
#if defined(MADV_HUGEPAGE) && !defined(__wasm__)  // the headers of WASI name it
#include <sys/resource.h>
#define ONESTEP_HUGE_PAGES
#endif
#include <unistd.h>

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
constexpr size_t kSmallClasses = size_class(kSmall).index + 1;

/// Blocks from kLeastCut on are cut from regions of huge pages: of pages of 4 KiB a training step needs more than the
/// processor's page table cache holds, in many tensors of less than a huge page. Above kMostKept they have regions of their
/// own, where those that are free are one with their neighbours: activations lie where gradients will be.
constexpr size_t kLeastCut = size_t{16} << 10, kMostKept = size_t{4} << 20;
#ifdef ONESTEP_HUGE_PAGES
constexpr bool kHasHugePages = true;
#else
constexpr bool kHasHugePages = false;
#endif

struct Span {
  std::byte* first;
  size_t bytes;

  std::byte* end() const { return first + bytes; }
};

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

/// Regions, of which what nobody has touched takes none of the system's memory, and the parts of them that are not cut, in
/// order of their addresses.
struct Regions {
  size_t usual_bytes;
  std::vector<Span> all, uncut;
};

struct Cache {
  SpinLock mutex;
  std::array<std::vector<void*>, 4 * 58 + 1> free_blocks;
  std::byte* slab = nullptr;
  size_t slab_left = 0;
  Regions regions{size_t{64} << 20, {}, {}}, large_regions{size_t{1} << 30, {}, {}};
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

/// What a small block takes of a slab.
size_t slab_step(SizeClass size) { return (size.bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// The pages within it, whose contents are lost.
void give_back_pages([[maybe_unused]] const Span& span) noexcept {
#ifdef ONESTEP_HUGE_PAGES
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t skipped = (page - reinterpret_cast<uintptr_t>(span.first) % page) % page;
  if (span.bytes > skipped) madvise(span.first + skipped, (span.bytes - skipped) / page * page, MADV_DONTNEED);
#endif
}

/// Adds a part to those that are not cut, as one with its neighbours in the same region.
void add_uncut(Regions& regions, Span span) {
  std::vector<Span>& uncut = regions.uncut;
  const auto starts_region = [&](const std::byte* place) {
    return std::any_of(regions.all.begin(), regions.all.end(), [=](const Span& region) { return region.first == place; });
  };
  const auto after =
      std::lower_bound(uncut.begin(), uncut.end(), span, [](const Span& a, const Span& b) { return a.first < b.first; });
  const bool joins_after = after != uncut.end() && span.end() == after->first && !starts_region(after->first);
  const bool joins_before = after != uncut.begin() && (after - 1)->end() == span.first && !starts_region(span.first);
  if (joins_before) {
    (after - 1)->bytes += span.bytes + (joins_after ? after->bytes : 0);
    if (joins_after) uncut.erase(after);
  } else if (joins_after) {
    *after = {span.first, span.bytes + after->bytes};
  } else {
    uncut.insert(after, span);
  }
}

/// Gives the system the regions of which nothing is cut, and of the rest the pages that are not.
void release_uncut(Regions& regions) noexcept {
  std::erase_if(regions.all, [&](const Span& region) {
    const auto whole = std::find_if(regions.uncut.begin(), regions.uncut.end(),
                                    [&](const Span& span) { return span.first == region.first && span.bytes == region.bytes; });
    if (whole == regions.uncut.end()) return false;
    regions.uncut.erase(whole);
    std::free(region.first);
    return true;
  });
  for (const Span& span : regions.uncut) give_back_pages(span);
}

/// Takes the blocks that nobody uses as uncut.
void uncut_free_blocks(Cache& c) noexcept {
  for (size_t index = kSmallClasses; index < c.free_blocks.size(); ++index) {
    auto& blocks = c.free_blocks[index];
    if (!is_cut(index)) continue;
    try {
      for (; !blocks.empty(); blocks.pop_back())
        add_uncut(c.regions, {static_cast<std::byte*>(blocks.back()), class_bytes(index)});
    } catch (const std::bad_alloc&) {
      return;
    }
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
  uncut_free_blocks(c);
  release_uncut(c.regions);
  release_uncut(c.large_regions);
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

/// The usual size of a region. Where addresses are limited (ulimit -v), what is not touched costs, too.
size_t region_bytes([[maybe_unused]] const Regions& regions) {
#ifdef ONESTEP_HUGE_PAGES
  rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    return std::min(regions.usual_bytes, size_t{64} << 20);
#endif
  return regions.usual_bytes;
}

/// Adds a region of `bytes` bytes at least: a smaller one where the system has no more.
void add_region(Cache& c, Regions& regions, size_t bytes) {
  Span region = {nullptr, 0};
  for (size_t size = region_bytes(regions); size > bytes && !region.first; size /= 4)
    region = {static_cast<std::byte*>(kernels::aligned_block(size)), size};
  if (region.first)
    ++c.stats.system_allocations;
  else
    region = {static_cast<std::byte*>(system_allocate(c, bytes)), bytes};
  regions.all.push_back(region);
  add_uncut(regions, region);
}

/// One that is cut from a region.
void* cut_from_region(Cache& c, SizeClass size) {
  Regions& regions = is_large(size.index) ? c.large_regions : c.regions;
  const auto has_room = [=](const Span& span) { return span.bytes >= size.bytes; };
  auto place = std::find_if(regions.uncut.begin(), regions.uncut.end(), has_room);
  if (place == regions.uncut.end()) {
    add_region(c, regions, size.bytes);
    place = std::find_if(regions.uncut.begin(), regions.uncut.end(), has_room);
  }
  void* const block = place->first;
  *place = {place->first + size.bytes, place->bytes - size.bytes};
  if (place->bytes == 0) regions.uncut.erase(place);
  return block;
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
  try {
    if (kCache && is_large(size.index)) return add_uncut(c.large_regions, {static_cast<std::byte*>(block), size.bytes});
    if (kCache) return c.free_blocks[size.index].push_back(block);
  } catch (const std::bad_alloc&) {                    // the list cannot grow
    if (is_small(size) || is_cut(size.index)) return;  // a part of something, which is lost
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
  return allocate(size, size_class(size));
}

void* allocate(size_t bytes, SizeClass size) {
  ThreadCache& mine = *own;
  if (!is_small(size) || mine.classes[size.index].held == 0) return allocate_shared(bytes, size);
  mine.count(static_cast<int64_t>(size.bytes));
  return mine.classes[size.index].blocks[--mine.classes[size.index].held];
}

void deallocate(void* block, size_t bytes) noexcept { deallocate(block, size_class(bytes)); }

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
