// Preloaded into one rank of a run (LD_PRELOAD). Once the file FAIL_WHEN exists, there is no memory left for `new`, once; with
// STOP_AT_END the rank stops when it comes to the end of MPI.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

void* operator new(std::size_t bytes) {
  static std::atomic<bool> failed = false;
  const char* const when = std::getenv("FAIL_WHEN");
  void* const block = std::malloc(bytes);
  if (block == nullptr || (when != nullptr && !failed && ::access(when, F_OK) == 0 && !failed.exchange(true)))
    throw std::bad_alloc();
  return block;
}

extern "C" int MPI_Finalize() {
  if (std::getenv("STOP_AT_END") != nullptr) ::raise(SIGSTOP);
  return reinterpret_cast<int (*)()>(::dlsym(RTLD_NEXT, "MPI_Finalize"))();
}
