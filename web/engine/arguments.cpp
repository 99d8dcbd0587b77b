#include "web/engine/arguments.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/format.h"
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

Arguments::Arguments(const json& object, std::initializer_list<std::string_view> known) : object_(object) {
  for (const auto& [key, value] : object.items())
    ONESTEP_CHECK(ConfigError, std::find(known.begin(), known.end(), key) != known.end(), "arguments: ", json_pointer("", key),
                  ": there is no such argument");
}

int64_t Arguments::integer(const char* key, int64_t otherwise, int64_t low, int64_t high) const {
  const int64_t value = web::integer(object_, key, otherwise);
  ONESTEP_CHECK(ConfigError, value >= low && value <= high, "arguments: /", key, ": must be from ", low, " to ", high, ": got ",
                value);
  return value;
}

double Arguments::number(const char* key, double otherwise, double low, double high) const {
  const double value = web::number(object_, key, otherwise);
  ONESTEP_CHECK(ConfigError, value >= low && value <= high, "arguments: /", key, ": must be from ", low, " to ", high, ": got ",
                value);
  return value;
}

bool Arguments::boolean(const char* key, bool otherwise) const {
  return value<bool>(object_, key, otherwise, &json::is_boolean, "true or false");
}

std::string Arguments::text(const char* key, const std::string& otherwise, size_t max_bytes) const {
  std::string value = text_argument(object_, key, otherwise);
  ONESTEP_CHECK(ConfigError, value.size() <= max_bytes, "arguments: /", key, ": has ", value.size(), " bytes, the most are ",
                max_bytes);
  return value;
}

std::string Arguments::choice(const char* key, const std::string& otherwise, const std::vector<std::string>& choices) const {
  std::string value = text_argument(object_, key, otherwise);
  ONESTEP_CHECK(ConfigError, std::find(choices.begin(), choices.end(), value) != choices.end(), "arguments: /", key,
                ": must be one of ", join(choices, ", "), ": got ", brief(value));
  return value;
}

}  // namespace onestep::web
