#pragma once
// Memory blocks for tensors and graph nodes: freed blocks go to a size-class cache, and large ones to regions where they are
// joined with their neighbours (regions.h), so that a training step in steady state asks the system for nothing.
#include <bit>
#include <cstddef>
#include <cstdint>

namespace onestep::memory {

/// A 64-byte aligned block of at least `bytes` bytes (uninitialised). When the system has no memory left the cached free blocks
/// above 1 KiB go back to it first; throws Error if that is not enough.
void* allocate(uint64_t bytes);
/// Gives back a block of `allocate(bytes)`.
void deallocate(void* block, size_t bytes) noexcept;
/// Returns the cached free blocks above 1 KiB to the system, or where their neighbours are in use the whole pages within them
/// (smaller ones are parts of larger blocks).
void release_cached() noexcept;

struct Stats {
  int64_t live_bytes = 0;          ///< Bytes in use now (rounded up to size classes, or of large blocks to pages).
  int64_t peak_bytes = 0;          ///< The most that was in use at once.
  int64_t system_allocations = 0;  ///< How often the system was asked for a block.
};
Stats stats() noexcept;
/// Counts the peak again, from what is in use now (torch.cuda.reset_peak_memory_stats).
void reset_peak() noexcept;

/// The class of a block: four a power of two (64, 80, 96, 112, 128, 160, ...), so that at most a quarter of it is waste. Large
/// blocks take no more than their pages.
struct SizeClass {
  size_t index, bytes;
};
constexpr SizeClass size_class(size_t bytes) {
  constexpr size_t least = 64;
  if (bytes <= least) return {0, least};
  const auto octave = static_cast<size_t>(std::bit_width(bytes - 1)) - 1;  // 2^octave < bytes <= 2^(octave + 1)
  const size_t quarter = size_t{1} << (octave - 2);
  const size_t step = (bytes - (size_t{1} << octave) + quarter - 1) / quarter;  // 1 to 4
  return {(octave - 6) * 4 + step, (size_t{1} << octave) + step * quarter};
}
/// The bytes of the class `index`.
constexpr size_t class_bytes(size_t index) {
  if (index == 0) return size_class(0).bytes;
  const size_t step = (index - 1) % 4 + 1;
  return (4 + step) << ((index - 1) / 4 + 4);  // in quarters of 2^octave, as above
}

/// allocate and deallocate for small objects, whose class is known.
void* allocate(size_t bytes, SizeClass size);
void deallocate(void* block, SizeClass size) noexcept;

/// A standard allocator over the cache, for the small objects of the graph.
template <class T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U>
  Allocator(const Allocator<U>&) noexcept {}
  T* allocate(size_t n) {
    return static_cast<T*>(n == 1 ? memory::allocate(sizeof(T), kOne) : memory::allocate(n * sizeof(T)));
  }
  void deallocate(T* p, size_t n) noexcept { n == 1 ? memory::deallocate(p, kOne) : memory::deallocate(p, n * sizeof(T)); }
  bool operator==(const Allocator&) const { return true; }

 private:
  static constexpr SizeClass kOne = size_class(sizeof(T));
};

}  // namespace onestep::memory
