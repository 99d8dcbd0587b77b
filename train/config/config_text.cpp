// How fields are written: values as JSON, and in words what they must be.
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "train/config/config_fields.h"

namespace onestep::train {
namespace {

std::string json_string(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

std::string to_json(double value) {
  const bool plain = value == 0 || (std::abs(value) >= 1e-5 && std::abs(value) < 1e15);
  char digits[64];
  char* const end =
      std::to_chars(digits, digits + sizeof digits, value, plain ? std::chars_format::fixed : std::chars_format::scientific)
          .ptr;
  const std::string text(digits, end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

namespace {

struct ValueJson {
  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const int64_t* value) const { return std::to_string(*value); }
  std::string operator()(const double* value) const { return to_json(*value); }
  std::string operator()(const std::string* value) const { return json_string(*value); }
  std::string operator()(const Choice& value) const { return json_string(std::string(value.names[*value.value])); }
  std::string operator()(const auto* list) const {
    std::string out = "[";
    for (const auto& item : *list) out += (out.size() > 1 ? ", " : "") + (*this)(&item);
    return out + "]";
  }
};

}  // namespace

std::string to_json(const FieldValue& value) { return std::visit(ValueJson(), value); }

std::string join_or(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return out;
}

std::string describe(const std::vector<When>& conditions) {
  std::string out;
  for (const When& when : conditions) out += (out.empty() ? "" : "; or ") + when.path + " = " + join_or(when.values);
  return out;
}

namespace {

// ` from 1 to 9`, ` of at least 0`, or nothing.
std::string range_words(const Field& field) {
  const auto number = [](double value) {
    return std::abs(value) < 1e15 && value == std::floor(value) ? std::to_string(static_cast<int64_t>(value)) : to_json(value);
  };
  if (std::isinf(field.low)) return "";
  if (std::isinf(field.high)) return " of at least " + number(field.low);
  return " from " + number(field.low) + (field.below_high ? " to below " : " to ") + number(field.high);
}

struct ExpectedWords {
  const Field& field;
  std::string operator()(const bool*) const { return "true or false"; }
  std::string operator()(const int64_t*) const {
    return "a whole number" + (std::isinf(field.low) ? " from -2^63 to 2^63 - 1" : range_words(field));
  }
  std::string operator()(const double*) const { return "a number" + range_words(field); }
  std::string operator()(const std::string*) const { return "a string that is not empty"; }
  std::string operator()(const Choice& /*choice*/) const { return join_or(field.choices); }
  std::string operator()(const std::array<double, 2>*) const { return "a list of two numbers" + range_words(field); }
  std::string operator()(const std::vector<int64_t>*) const { return "a list of whole numbers, not empty"; }
  std::string operator()(const std::vector<std::string>*) const { return "a list of strings, not empty"; }
};

struct ExpectedItemWords {
  const Field& field;
  std::string operator()(const std::array<double, 2>*) const { return "a number" + range_words(field); }
  std::string operator()(const std::vector<int64_t>*) const { return "a whole number" + range_words(field); }
  std::string operator()(const auto*) const { return "a string that is not empty"; }
  std::string operator()(const Choice& /*no list*/) const { return ""; }
};

}  // namespace

std::string expected(const Field& field) { return std::visit(ExpectedWords{field}, default_value(field)); }

std::string expected_item(const Field& field) { return std::visit(ExpectedItemWords{field}, default_value(field)); }

std::string default_json(const Field& field) { return field.usual ? to_json(*field.usual) : to_json(default_value(field)); }

std::string default_words(const Field& field) {
  if (!field.required.empty()) return holds(field.required, Config()) ? "required" : "required for " + describe(field.required);
  if (field.optional) return "none";
  if (!field.derived.empty()) return field.derived;
  std::string out = default_json(field);
  for (const auto& [kind, number] : field.defaults) out += "; for " + kind + " " + to_json(number);
  return out;
}

}  // namespace onestep::train
