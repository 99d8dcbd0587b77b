#pragma once
// Memory from the system for numbers.
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>

#include "base/error.h"

namespace onestep::kernels {

inline constexpr size_t kHugePage = size_t{2} << 20;

/// A 64-byte aligned block of at least `bytes` bytes, for std::free; null if there is none. A block that can hold huge pages
/// asks for them: a product that reads down the columns of a large matrix needs a page a row, more than the processor's page
/// table cache holds at 4 KiB each.
inline void* aligned_block(size_t bytes) {
  constexpr size_t kLine = 64;
  const size_t alignment = bytes < kHugePage ? kLine : kHugePage;
  void* const block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
#ifdef MADV_HUGEPAGE
  if (block && alignment == kHugePage) madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // a hint: may fail
#endif
  return block;
}

/// Throws Error: the system has no such block.
[[noreturn]] inline void fail_without_block(size_t bytes) {
  fail<Error>("memory: the system has no block of ", bytes, " bytes left (a smaller model, batch or context needs less)");
}

/// The same; throws Error if there is none.
inline void* required_block(size_t bytes) {
  void* const block = aligned_block(bytes);
  if (!block) fail_without_block(bytes);
  return block;
}

}  // namespace onestep::kernels
