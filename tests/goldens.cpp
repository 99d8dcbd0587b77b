#include "tests/goldens.h"

#include <fstream>
#include <limits>
#include <map>

#include "base/error.h"
#include "tests/paths.h"

namespace onestep::testing {

const nlohmann::json& golden(const std::string& name) {
  static std::map<std::string, nlohmann::json> loaded;
  const auto [entry, is_new] = loaded.try_emplace(name);
  if (is_new) {
    const std::string path = ONESTEP_SOURCE_DIR "/tests/goldens/" + name;
    std::ifstream file(path);
    entry->second = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    ONESTEP_CHECK(IoError, !entry->second.is_discarded(), path, ": missing or not JSON");
  }
  return entry->second;
}

double number(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  fail<IoError>("goldens: not a number: ", value.dump());
}

std::string fnv1a(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3;
  return hex(hash, 16);
}

std::string hex(uint64_t value, int digits) {
  std::string out;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[value >> shift & 15];
  return out;
}

}  // namespace onestep::testing
