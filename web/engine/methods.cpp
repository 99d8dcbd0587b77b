#include "web/engine/methods.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_reader.h"
#include "web/engine/attention_steps.h"
#include "web/engine/backward_steps.h"
#include "web/engine/model_methods.h"
#include "web/engine/run_methods.h"

namespace onestep::web {
namespace {

using nlohmann::json;

json method_names(const json& /*arguments*/) {
  json names = json::array();
  for (const Method& method : methods()) names.push_back(method.name);
  return names;
}

/// As text that is UTF-8 whatever a message quotes.
std::string dumped(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

std::string_view error_type(const std::exception& error) {
  const auto is = [&]<class T>() { return dynamic_cast<const T*>(&error) != nullptr; };
  if (is.operator()<IndexError>()) return "IndexError";
  if (is.operator()<ShapeError>()) return "ShapeError";
  if (is.operator()<DTypeError>()) return "DTypeError";
  if (is.operator()<GradError>()) return "GradError";
  if (is.operator()<ConfigError>()) return "ConfigError";
  if (is.operator()<IoError>()) return "IoError";
  if (is.operator()<DivergedError>()) return "DivergedError";
  if (is.operator()<InterruptedError>()) return "InterruptedError";
  if (is.operator()<std::bad_alloc>()) return "MemoryError";
  return "Error";
}

const std::vector<Method>& methods() {
  static const std::vector<Method> all = [] {
    std::vector<Method> joined{{"methods", method_names}};
    for (const auto& subject : {run_methods(), model_methods(), attention_methods(), backward_methods()})
      joined.insert(joined.end(), subject.begin(), subject.end());
    return joined;
  }();
  return all;
}

std::string call(std::string_view method, std::string_view arguments) {
  try {
    const auto found = std::find_if(methods().begin(), methods().end(), [&](const Method& m) { return m.name == method; });
    ONESTEP_CHECK(ConfigError, found != methods().end(), "call: there is no method ", method);
    const json parsed = parse_json<ConfigError>(arguments, "arguments");
    ONESTEP_CHECK(ConfigError, parsed.is_object(), "arguments: must be an object: ", brief(parsed));
    return dumped(found->function(parsed));
  } catch (const std::bad_alloc&) {
    return R"({"error":{"message":"out of memory","type":"MemoryError"}})";
  } catch (const std::exception& error) {
    return dumped({{"error", {{"type", error_type(error)}, {"message", error.what()}}}});
  }
}

}  // namespace onestep::web
