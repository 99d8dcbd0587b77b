#pragma once
// Reading the arguments of a method. Throws ConfigError that names the key for one that is missing or of another type.
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onestep::web {

/// The value of `key`, or `otherwise` where it is missing and there is such a value.
int64_t integer(const nlohmann::json& arguments, const char* key, std::optional<int64_t> otherwise = {});
double number(const nlohmann::json& arguments, const char* key, std::optional<double> otherwise = {});
std::string text_argument(const nlohmann::json& arguments, const char* key, std::optional<std::string> otherwise = {});

/// Arguments that are all known, each with a value to use where it is missing and with bounds. Throws ConfigError that names
/// what does not fit.
class Arguments {
 public:
  /// `known` are all keys there may be. The object must outlive this.
  Arguments(const nlohmann::json& object, std::initializer_list<std::string_view> known);

  int64_t integer(const char* key, int64_t otherwise, int64_t low, int64_t high) const;
  double number(const char* key, double otherwise, double low, double high) const;
  bool boolean(const char* key, bool otherwise) const;
  /// At most `max_bytes` of text.
  std::string text(const char* key, const std::string& otherwise, size_t max_bytes) const;
  std::string choice(const char* key, const std::string& otherwise, const std::vector<std::string>& choices) const;

 private:
  const nlohmann::json& object_;
};

}  // namespace onestep::web
