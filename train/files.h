#pragma once
// Reading whole files that nobody has vouched for.
#include <cstdint>
#include <string>

namespace onestep::train {

/// The bytes of a regular file of at most `max_bytes`. Throws IoError (`PATH: what is wrong`) for anything else: a missing or
/// unreadable file, a directory, a pipe or device (never waits on one), a larger file.
std::string read_file(const std::string& path, int64_t max_bytes);

/// `1,024 bytes`, `1 MiB`: a size for messages.
std::string format_bytes(int64_t bytes);

}  // namespace onestep::train
