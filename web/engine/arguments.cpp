#include "web/engine/arguments.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_reader.h"

namespace onestep::web {
namespace {

using nlohmann::json;

/// The value as T, if `is` it; `otherwise` where there is none.
template <class T>
T value(const json& arguments, const char* key, std::optional<T> otherwise, bool (json::*is)() const, const char* what) {
  const auto found = arguments.find(key);
  if (found == arguments.end() && otherwise) return *otherwise;
  ONESTEP_CHECK(ConfigError, found != arguments.end(), "arguments: /", key, ": is missing");
  ONESTEP_CHECK(ConfigError, ((*found).*is)(), "arguments: /", key, ": must be ", what, ": got ", brief(*found));
  return found->get<T>();
}

}  // namespace

int64_t integer(const json& arguments, const char* key, std::optional<int64_t> otherwise) {
  return value(arguments, key, otherwise, &json::is_number_integer, "a whole number");
}

double number(const json& arguments, const char* key, std::optional<double> otherwise) {
  return value(arguments, key, otherwise, &json::is_number, "a number");
}

std::string text_argument(const json& arguments, const char* key, std::optional<std::string> otherwise) {
  return value(arguments, key, std::move(otherwise), &json::is_string, "a text");
}

}  // namespace onestep::web
