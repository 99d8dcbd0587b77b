#pragma once
// Opening what must be a regular file, and the words for failed system calls.
#include <sys/types.h>

#include <cstdint>
#include <string>

namespace onestep {

/// The words of an errno: `no such file`, `the disk is full`, ...
std::string error_reason(int error);

/// Throws IoError unless `mode` (stat's) is that of a regular file.
void check_regular(const std::string& path, mode_t mode);

/// open(2). Throws IoError, also for a name that the system would cut short or take for the working directory.
int open_file(const std::string& path, int flags);

struct OpenFile {
  int fd;
  uint64_t size;
};

/// Opens a regular file and nothing else. Throws IoError.
OpenFile open_regular(const std::string& path, int flags);

}  // namespace onestep
