#pragma once
// What the fuzz targets share: bytes as a file without a disk, and a check that ends the program.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace onestep::fuzz {

/// A file in memory, known by a path.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {
    if (fd_ < 0) std::perror("memfd_create"), std::abort();
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  void fill(std::string_view bytes) const {
    const bool done = ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, bytes.data(), bytes.size(), 0) == ssize_t(bytes.size());
    if (!done) std::perror("memfd"), std::abort();
  }

 private:
  int fd_;
};

/// A folder of two such files.
class MemoryFolder {
 public:
  MemoryFolder(const char* first_name, const char* second_name) : first(first_name), second(second_name) {
    std::string name = (std::filesystem::temp_directory_path() / "onestep-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::perror("mkdtemp"), std::abort();
    path_ = name;
    std::filesystem::create_symlink(first.path(), path_ / first_name);
    std::filesystem::create_symlink(second.path(), path_ / second_name);
  }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  /// What is before the first NUL byte goes into the first file, what is behind it into the second.
  void fill(std::string_view both) const {
    const size_t end = std::min(both.find('\0'), both.size());
    first.fill(both.substr(0, end));
    second.fill(both.substr(std::min(end + 1, both.size())));
  }

  const MemoryFile first, second;

 private:
  std::filesystem::path path_;
};

/// Ends the program, so that the fuzzer keeps the input.
inline void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

inline std::string_view text_of(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

}  // namespace onestep::fuzz
