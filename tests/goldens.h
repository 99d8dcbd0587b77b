#pragma once
// Reference data of tests/goldens: reading it, and the hash by which it lists long results.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace onestep::testing {

/// tests/goldens/NAME, parsed once a process; throws IoError naming a file that is missing or not JSON.
const nlohmann::json& golden(const std::string& name);

/// A JSON number, or one of the strings "nan", "inf" and "-inf" that stand for one; throws IoError for anything else.
double number(const nlohmann::json& value);

/// All numbers of an array of any depth, in order, rounded to T.
template <class T>
std::vector<T> numbers(const nlohmann::json& values) {
  std::vector<T> out;
  if (!values.is_array()) return {static_cast<T>(number(values))};
  for (const nlohmann::json& value : values) {
    const std::vector<T> inner = numbers<T>(value);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

/// 64-bit FNV-1a of the bytes (of a little-endian machine, as the goldens say), as 16 hexadecimal digits.
std::string fnv1a(std::span<const std::byte> bytes);
template <class T>
std::string fnv1a(const std::vector<T>& values) {
  return fnv1a(std::as_bytes(std::span(values)));
}

/// `value` as `digits` lower-case hexadecimal digits.
std::string hex(uint64_t value, int digits);

}  // namespace onestep::testing
