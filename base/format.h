#pragma once
// Numbers and lists for people.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onestep {

/// `1h 2min 3s`: a time for people.
std::string duration(double seconds);

/// `12,345` with `digits` decimals: a number for people.
std::string grouped(double value, int digits = 0);
/// The same of a whole number.
inline std::string grouped_count(int64_t n) { return grouped(static_cast<double>(n)); }

/// `1,024 bytes`, `1 MiB`: a size for messages.
std::string format_bytes(int64_t bytes);

/// `a, b, c` with the separator `, `.
std::string join(const std::vector<std::string>& words, std::string_view separator);

/// Rows of cells as lines of columns two spaces apart: the first one left-aligned, the others right-aligned.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace onestep
