#include "autograd/regions.h"

#ifdef ONESTEP_HUGE_PAGES
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "autograd/kernels/aligned_block.h"

namespace onestep::memory {
namespace {

/// The pages within it, whose contents are lost.
void give_back_pages([[maybe_unused]] const Span& span) noexcept {
#ifdef ONESTEP_HUGE_PAGES
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t skipped = (page - reinterpret_cast<uintptr_t>(span.first) % page) % page;
  if (span.bytes > skipped) madvise(span.first + skipped, (span.bytes - skipped) / page * page, MADV_DONTNEED);
#endif
}

/// The usual size of a region. Where addresses are limited (ulimit -v), what is not touched costs, too.
size_t allowed(size_t usual_bytes) {
#ifdef ONESTEP_HUGE_PAGES
  rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return std::min(usual_bytes, size_t{64} << 20);
#endif
  return usual_bytes;
}

}  // namespace

/// So that no list has to grow until there are more regions or blocks.
void Regions::reserve(size_t regions, size_t blocks) {
  if (all_.capacity() < regions) all_.reserve(2 * regions);
  if (uncut_.capacity() < regions + blocks) uncut_.reserve(2 * (regions + blocks));
}

void* Regions::cut(size_t bytes) {
  reserve(all_.size(), blocks_ + 1);
  auto place = uncut_.end();
  for (auto i = uncut_.begin(); i != uncut_.end(); ++i)
    if (i->bytes >= bytes && (place == uncut_.end() || i->bytes < place->bytes)) place = i;
  if (place == uncut_.end()) return nullptr;
  ++blocks_;
  void* const block = place->first;
  *place = {place->first + bytes, place->bytes - bytes};
  if (place->bytes == 0) uncut_.erase(place);
  return block;
}

void Regions::put_back(Span block) noexcept {
  --blocks_;
  insert(block);
}

/// Adds a part to those that are not cut, as one with its neighbours in the same region.
void Regions::insert(Span part) noexcept {
  const auto starts_region = [&](const std::byte* place) {
    return std::any_of(all_.begin(), all_.end(), [=](const Span& region) { return region.first == place; });
  };
  const auto after =
      std::lower_bound(uncut_.begin(), uncut_.end(), part, [](const Span& a, const Span& b) { return a.first < b.first; });
  const bool joins_after = after != uncut_.end() && part.end() == after->first && !starts_region(after->first);
  const bool joins_before = after != uncut_.begin() && (after - 1)->end() == part.first && !starts_region(part.first);
  if (joins_before) {
    (after - 1)->bytes += part.bytes + (joins_after ? after->bytes : 0);
    if (joins_after) uncut_.erase(after);
  } else if (joins_after) {
    *after = {part.first, part.bytes + after->bytes};
  } else {
    uncut_.insert(after, part);
  }
}

bool Regions::grow(size_t bytes) {
  reserve(all_.size() + 1, blocks_);
  Span region = {nullptr, 0};
  for (size_t size = allowed(usual_bytes_); size > bytes && !region.first; size /= 4)
    region = {static_cast<std::byte*>(kernels::aligned_block(size)), size};
  if (!region.first) region = {static_cast<std::byte*>(kernels::aligned_block(bytes)), bytes};
  if (!region.first) return false;
  all_.push_back(region);
  insert(region);
  return true;
}

void Regions::release() noexcept {
  std::erase_if(all_, [&](const Span& region) {
    const auto whole = std::find_if(uncut_.begin(), uncut_.end(),
                                    [&](const Span& span) { return span.first == region.first && span.bytes == region.bytes; });
    if (whole == uncut_.end()) return false;
    uncut_.erase(whole);
    std::free(region.first);
    return true;
  });
  for (const Span& span : uncut_) give_back_pages(span);
}

}  // namespace onestep::memory
