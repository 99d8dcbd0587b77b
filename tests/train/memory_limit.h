#pragma once
// Holds a reader to the memory that its file justifies.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include "autograd/memory.h"

namespace onestep::testing {

/// What a file of so many bytes may cost at most.
constexpr uint64_t memory_for(uint64_t file_bytes) { return file_bytes + (uint64_t{64} << 20); }

/// Until the end of its scope the process gets no more than `bytes` of address space on top of what it has: an allocation of a
/// claimed size fails with std::bad_alloc. Sanitizers take terabytes of their own: with them there is no limit.
class MemoryLimit {
 public:
  explicit MemoryLimit(uint64_t bytes) {
    memory::release_cached();  // a claimed size could be had from there
    ::getrlimit(RLIMIT_AS, &before_);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    set(pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + bytes);
#else
    static_cast<void>(bytes);
#endif
  }
  ~MemoryLimit() { set(before_.rlim_cur); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  void set(rlim_t bytes) const {
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &limit);
  }

  rlimit before_{};
};

}  // namespace onestep::testing
