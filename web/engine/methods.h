#pragma once
// What a page calls: methods by name, with arguments and results in JSON.
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace onestep::web {

/// A method takes one JSON object and returns any JSON value. Throws Error.
struct Method {
  std::string_view name;
  nlohmann::json (*function)(const nlohmann::json& arguments);
};

/// The name of the most derived type of the project's that the exception has: "GradError".
std::string_view error_type(const std::exception& error);

/// All methods, by subject in the order of methods.cpp.
const std::vector<Method>& methods();

/// Calls a method with its arguments as JSON text; returns its result as JSON text. Throws nothing: a failure is
/// `{"error": {"type": "ShapeError", "message": "..."}}`, the type being the exception's name. Numbers that are not finite
/// become null.
std::string call(std::string_view method, std::string_view arguments);

}  // namespace onestep::web
