#pragma once
// The lines of a file that a run appends to.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_file.h"

namespace onestep::train {

/// Reads a file line by line, of which a piece is in memory at a time. Throws IoError, also for a line above 1 MiB.
class LineReader {
 public:
  explicit LineReader(const std::string& path) : path_(path), file_(path) {}

  /// Reads the next line; false after the last.
  bool next(std::string& line);
  /// Whether the line that was read last has its end.
  bool is_whole() const { return is_whole_; }
  /// Bytes read so far, to the end of that line.
  uint64_t bytes() const { return bytes_; }
  /// `FILE: line 12`.
  std::string place() const { return path_ + ": line " + std::to_string(number_); }

 private:
  bool refill();

  std::string path_;
  InputFile file_;
  std::vector<char> buffer_ = std::vector<char>(size_t{1} << 16);
  std::string_view rest_;  // of the buffer, still to be read
  uint64_t bytes_ = 0;
  int64_t number_ = 0;
  bool is_whole_ = false;
};

}  // namespace onestep::train
