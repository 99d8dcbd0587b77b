#pragma once
// Reading the arguments of a method. Throws ConfigError that names the key for one that is missing or of another type.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace onestep::web {

/// The value of `key`, or `otherwise` where it is missing and there is such a value.
int64_t integer(const nlohmann::json& arguments, const char* key, std::optional<int64_t> otherwise = {});
double number(const nlohmann::json& arguments, const char* key, std::optional<double> otherwise = {});
std::string text_argument(const nlohmann::json& arguments, const char* key, std::optional<std::string> otherwise = {});

}  // namespace onestep::web
