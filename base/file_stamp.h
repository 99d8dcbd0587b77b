#pragma once
// The size and the hash of a file.
#include <cstdint>
#include <string>

namespace onestep {

/// What tells a file's contents from any other.
struct FileStamp {
  uint64_t bytes = 0;
  std::string hash;  ///< XXH3-128.
  bool operator==(const FileStamp&) const = default;
};

}  // namespace onestep
