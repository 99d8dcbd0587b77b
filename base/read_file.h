#pragma once
// Reading untrusted files: only regular ones, never more than expected.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/file_stamp.h"

namespace onestep {

/// A regular file open for reading. Throws IoError (`PATH: what is wrong`) for anything else: a missing or unreadable file, a
/// directory, a pipe or device (never waits on one).
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Its size when it was opened.
  uint64_t size() const { return size_; }
  /// Reads up to `count` bytes; 0 at the end of the file.
  size_t read_some(void* to, size_t count);
  /// Reads exactly `count` bytes; a file that ends before is an error.
  void read(void* to, size_t count);
  /// What is read next is at this byte.
  void seek(uint64_t at);

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

/// Reads up to `count` bytes; 0 at the end. Throws IoError, which calls the file `name`.
size_t read_some(int fd, const std::string& name, void* to, size_t count);

/// The bytes of a regular file of at most `max_bytes`. Throws IoError as InputFile does, and for a larger file.
std::string read_file(const std::string& path, int64_t max_bytes);

/// The stamp of a file, read in pieces.
FileStamp stamp_file(const std::string& path);

}  // namespace onestep
