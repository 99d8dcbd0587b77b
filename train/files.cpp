#include "train/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "autograd/error.h"

namespace onestep::train {
namespace {

struct FileDescriptor {
  explicit FileDescriptor(int descriptor) : fd(descriptor) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd >= 0) close(fd);
  }
  int fd;
};

std::string reason(int error) {
  switch (error) {
    case ENOENT:
      return "no such file";
    case EACCES:
      return "permission denied";
    default:
      return std::strerror(error);
  }
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) bytes /= 1024, ++unit;
  return std::to_string(bytes) + " " + units[unit];
}

std::string read_file(const std::string& path, int64_t max_bytes) {
  check<IoError>(!path.empty(), "the name of the file is empty");
  check<IoError>(path.find('\0') == std::string::npos, "the name of the file holds a NUL byte");
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  check<IoError>(file.fd >= 0, path, ": cannot be opened: ", reason(errno));
  struct stat status {};
  check<IoError>(fstat(file.fd, &status) == 0, path, ": cannot be examined: ", reason(errno));
  check<IoError>(!S_ISDIR(status.st_mode), path, ": is a directory, not a file");
  check<IoError>(S_ISREG(status.st_mode), path, ": is not a regular file (a pipe, socket or device)");
  check<IoError>(status.st_size <= max_bytes, path, ": too large: ", format_bytes(status.st_size), ", at most ",
                 format_bytes(max_bytes), " are read");

  std::string bytes;
  bytes.reserve(static_cast<size_t>(status.st_size));
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = read(file.fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    check<IoError>(count >= 0, path, ": cannot be read: ", reason(errno));
    if (count == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(count));
    check<IoError>(static_cast<int64_t>(bytes.size()) <= max_bytes, path, ": grew beyond ", format_bytes(max_bytes),
                   " while it was read");
  }
}

}  // namespace onestep::train
