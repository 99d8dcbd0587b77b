// What a page gets from the engine: methods by name, errors as values.

#include "web/engine/methods.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using nlohmann::json;
using onestep::web::call;

TEST_CASE("web: methods are called by name with JSON") {
  const json names = json::parse(call("methods", "{}"));
  REQUIRE(names.is_array());
  CHECK(names.size() == onestep::web::methods().size());
  CHECK(names.at(0) == "methods");
}

TEST_CASE("web: failures are values with the exception's type and message") {
  const auto error_of = [](std::string_view method, std::string_view arguments) {
    return json::parse(call(method, arguments)).at("error");
  };
  CHECK(error_of("fly", "{}").at("type") == "ConfigError");
  CHECK(error_of("fly", "{}").at("message") == "call: there is no method fly");
  CHECK(error_of("methods", "{").at("type") == "ConfigError");
  CHECK(error_of("methods", "[]").at("message") == "arguments: must be an object: []");
  CHECK(error_of("\xff", "{}").at("type") == "ConfigError");  // not UTF-8, quoted in the message
}
