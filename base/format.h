#pragma once
// Numbers for people.
#include <cstdint>
#include <string>

namespace onestep {

/// `1h 2min 3s`: a time for people.
std::string duration(double seconds);

/// `12,345` with `digits` decimals: a number for people.
std::string grouped(double value, int digits = 0);

/// `1,024 bytes`, `1 MiB`: a size for messages.
std::string format_bytes(int64_t bytes);

}  // namespace onestep
