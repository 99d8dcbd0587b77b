// Preloaded into the program (LD_PRELOAD): of its calls that change files whose path contains FAIL_UNDER, the one with the
// number FAIL_AT fails with the error FAIL_ERROR, or with FAIL_ERROR=kill the process is killed there.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string path_of(int fd) {
  char path[4096];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

/// Whether this call is the one that fails; errno is then set.
bool fails(const std::string& path) {
  static std::atomic<int> calls = 0;
  const char *under = std::getenv("FAIL_UNDER"), *at = std::getenv("FAIL_AT"), *error = std::getenv("FAIL_ERROR");
  if (under == nullptr || at == nullptr || error == nullptr || path.find(under) == std::string::npos) return false;
  if (++calls != std::atoi(at)) return false;
  if (std::strcmp(error, "kill") == 0) ::kill(::getpid(), SIGKILL);
  errno = std::atoi(error);
  return true;
}

template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return fails(path) ? -1 : real<int(const char*, int, ...)>("open")(path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  return fails(path_of(fd)) ? -1 : real<ssize_t(int, const void*, size_t)>("write")(fd, bytes, count);
}

int fsync(int fd) { return fails(path_of(fd)) ? -1 : real<int(int)>("fsync")(fd); }

int rename(const char* from, const char* to) noexcept {
  return fails(from) ? -1 : real<int(const char*, const char*)>("rename")(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return fails(path) ? -1 : real<int(const char*, mode_t)>("mkdir")(path, mode);
}

int truncate(const char* path, off_t length) noexcept {
  return fails(path) ? -1 : real<int(const char*, off_t)>("truncate")(path, length);
}
}
