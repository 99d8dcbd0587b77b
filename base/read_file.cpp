#include "base/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/open_file.h"

namespace onestep {
namespace {

constexpr size_t kBlock = size_t{1} << 16;  // bytes read at a time; not on the stack, which may be no larger

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  const OpenFile file = open_regular(path, O_RDONLY);
  fd_ = file.fd;
  size_ = file.size;
}

InputFile::~InputFile() { ::close(fd_); }

size_t read_some(int fd, const std::string& name, void* to, size_t count) {
  while (true) {
    const ssize_t got = ::read(fd, to, count);
    if (got < 0 && errno == EINTR) continue;
    ONESTEP_CHECK(IoError, got >= 0, name, ": cannot be read: ", error_reason(errno));
    return static_cast<size_t>(got);
  }
}

size_t InputFile::read_some(void* to, size_t count) { return onestep::read_some(fd_, path_, to, count); }

void InputFile::read(void* to, size_t count) {
  for (auto* place = static_cast<char*>(to); count > 0;) {
    const size_t got = read_some(place, count);
    ONESTEP_CHECK(IoError, got > 0, path_, ": cannot be read: it ended early");
    place += got;
    count -= got;
  }
}

void InputFile::seek(uint64_t at) {
  ONESTEP_CHECK(IoError, ::lseek(fd_, static_cast<off_t>(at), SEEK_SET) >= 0, path_, ": cannot be read: ", error_reason(errno));
}

std::string read_file(const std::string& path, int64_t max_bytes) {
  InputFile file(path);
  const auto size = static_cast<int64_t>(file.size());
  ONESTEP_CHECK(IoError, size <= max_bytes, path, ": too large: ", format_bytes(size), ", at most ", format_bytes(max_bytes),
                " are read");
  std::string bytes;
  bytes.reserve(file.size());
  std::vector<char> block(kBlock);
  while (const size_t count = file.read_some(block.data(), block.size())) {
    bytes.append(block.data(), count);
    ONESTEP_CHECK(IoError, static_cast<int64_t>(bytes.size()) <= max_bytes, path, ": grew beyond ", format_bytes(max_bytes),
                  " while it was read");
  }
  return bytes;
}

FileStamp stamp_file(const std::string& path) {
  InputFile file(path);
  Hasher hasher;
  uint64_t bytes = 0;
  std::vector<char> block(kBlock);
  while (const size_t count = file.read_some(block.data(), block.size())) {
    hasher.update(block.data(), count);
    bytes += count;
  }
  return {bytes, hasher.hex()};
}

}  // namespace onestep
