#include "base/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/utf8.h"

namespace onestep {

std::string error_reason(int error) {
  switch (error) {
    case ENOENT:
      return "no such file";
    case EACCES:
      return "permission denied";
    case EEXIST:
      return "a file or a link to nothing has that name";
    case ENOSPC:
      return "the disk is full";
    case EDQUOT:
      return "the disk quota is used up";
    case EFBIG:
      return "the file would be larger than the system allows";
    default:
      return std::strerror(error);
  }
}

int open_file(const std::string& path, int flags) {
  ONESTEP_CHECK(IoError, !path.empty(), "the name of the file is empty");
  ONESTEP_CHECK(IoError, path.find('\0') == std::string::npos, quote(path), ": the name of a file must not hold a NUL byte");
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0644);
  ONESTEP_CHECK(IoError, fd >= 0, path, ": cannot be opened: ", error_reason(errno));
  return fd;
}

void check_regular(const std::string& path, mode_t mode) {
  ONESTEP_CHECK(IoError, !S_ISDIR(mode), path, ": is a directory, not a file");
  ONESTEP_CHECK(IoError, S_ISREG(mode), path, ": is not a regular file (a pipe, socket or device)");
}

OpenFile open_regular(const std::string& path, int flags) {
  const int fd = open_file(path, flags | O_NONBLOCK);  // opening a pipe must not wait for its other end
  struct stat status {};
  try {
    const bool known = ::fstat(fd, &status) == 0;
    ONESTEP_CHECK(IoError, known, path, ": cannot be examined: ", error_reason(errno));
    check_regular(path, status.st_mode);
  } catch (...) {
    ::close(fd);
    throw;
  }
  return {fd, static_cast<uint64_t>(status.st_size)};
}

}  // namespace onestep
