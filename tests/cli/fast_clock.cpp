// Preloaded into the program (LD_PRELOAD): whenever it asks how late it is, another second has passed. Work of a moment then
// shows the progress of long work.
#include <dlfcn.h>

#include <atomic>
#include <ctime>

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static std::atomic<int> asked = 0;
  static const auto real = reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, time);
  if (clock == CLOCK_MONOTONIC) time->tv_sec += ++asked;
  return result;
}
