// Preloaded into the program (LD_PRELOAD): of its calls that change files whose path contains FAIL_UNDER, the one with the
// number FAIL_AT meets with FAIL_ERROR, and the file FAIL_MARK is made to tell that it was reached. FAIL_ERROR is an error
// number; or `short`: a write writes half of its bytes (other calls do what they do); `kill`: the process is killed there;
// `torn`: it is killed when half of a write is done.
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
#include <string>

namespace {

template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

std::string path_of(int fd) {
  char path[4096];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

/// The path as it is called without a descriptor: the program reaches a run's folder as /proc/self/fd/N.
std::string named(const char* path) {
  const std::string text = path, prefix = "/proc/self/fd/";
  if (!text.starts_with(prefix)) return text;
  size_t digits = 0;
  const int fd = std::stoi(text.substr(prefix.size()), &digits);
  return path_of(fd) + text.substr(prefix.size() + digits);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void die() { ::kill(::getpid(), SIGKILL); }

/// Whether this call is the one.
bool is_chosen(const std::string& path) {
  static std::atomic<int> calls = 0;
  const std::string under = variable("FAIL_UNDER");
  if (under.empty() || path.find(under) == std::string::npos || ++calls != std::atoi(variable("FAIL_AT").c_str())) return false;
  const int mark = real<int(const char*, int, ...)>("open")(variable("FAIL_MARK").c_str(), O_WRONLY | O_CREAT, 0600);
  real<int(int)>("close")(mark);
  return true;
}

/// Whether a call that writes no bytes fails; errno is then set.
bool fails(const std::string& path) {
  if (!is_chosen(path)) return false;
  const std::string error = variable("FAIL_ERROR");
  if (error == "kill" || error == "torn") die();
  errno = std::atoi(error.c_str());
  return error != "short";
}

/// Writes with `put(count)`, or as FAIL_ERROR says.
template <class Put>
ssize_t write_or_fail(int fd, size_t count, const Put& put) {
  if (!is_chosen(path_of(fd))) return put(count);
  const std::string error = variable("FAIL_ERROR");
  if (error == "kill") die();
  if (error == "short" || error == "torn") {
    const ssize_t done = put((count + 1) / 2);
    if (error == "torn") die();
    return done;
  }
  errno = std::atoi(error.c_str());
  return -1;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return fails(named(path)) ? -1 : real<int(const char*, int, ...)>("open")(path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  return write_or_fail(fd, count, [&](size_t n) { return real<ssize_t(int, const void*, size_t)>("write")(fd, bytes, n); });
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t at) {
  return write_or_fail(fd, count,
                       [&](size_t n) { return real<ssize_t(int, const void*, size_t, off_t)>("pwrite")(fd, bytes, n, at); });
}

int fsync(int fd) { return fails(path_of(fd)) ? -1 : real<int(int)>("fsync")(fd); }

int close(int fd) {
  const bool written = (::fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;  // closing what was only read changes nothing
  const bool failed = written && fails(path_of(fd));
  const int error = errno, result = real<int(int)>("close")(fd);  // closed it is in any case
  if (!failed) return result;
  errno = error;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  return fails(named(from)) ? -1 : real<int(const char*, const char*)>("rename")(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return fails(named(path)) ? -1 : real<int(const char*, mode_t)>("mkdir")(path, mode);
}

int truncate(const char* path, off_t length) noexcept {
  return fails(path) ? -1 : real<int(const char*, off_t)>("truncate")(path, length);
}
}
