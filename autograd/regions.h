#pragma once
// Large pieces of memory in huge pages, from which blocks are cut: of pages of 4 KiB a training step needs more than the
// processor's page table cache holds, in many tensors of less than a huge page. For memory.cpp, which holds a lock around all
// of it.
#include <cstddef>
#include <vector>

#if defined(__linux__)
#define ONESTEP_HUGE_PAGES
#endif

namespace onestep::memory {

#ifdef ONESTEP_HUGE_PAGES
inline constexpr bool kHasHugePages = true;
#else
inline constexpr bool kHasHugePages = false;
#endif

struct Span {
  std::byte* first;
  size_t bytes;

  std::byte* end() const { return first + bytes; }
};

/// Regions, of which what nobody has touched takes none of the system's memory, and the parts of them that are not cut.
class Regions {
 public:
  constexpr explicit Regions(size_t usual_bytes) : usual_bytes_(usual_bytes) {}
  /// A block of the smallest part that is large enough; null where there is none. Throws std::bad_alloc where the list of parts
  /// has no room for its return.
  void* cut(size_t bytes);
  /// Takes a block back, as one with what is not cut beside it.
  void put_back(Span block) noexcept;
  /// Adds a region of `bytes` bytes at least, of less than usual where the system has no more; false where it has not even
  /// that.
  bool grow(size_t bytes);
  /// Gives the system the regions of which nothing is cut, and of the rest the pages that are not.
  void release() noexcept;

 private:
  void reserve(size_t regions, size_t blocks);
  void insert(Span part) noexcept;

  size_t usual_bytes_, blocks_ = 0;
  std::vector<Span> all_;
  std::vector<Span> uncut_;  // in order of their addresses; with room for one after each block and at the start of each region
};

}  // namespace onestep::memory
