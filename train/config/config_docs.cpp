// What the table of keys says to people and to editors: --help, docs/config.md, configs/schema.json.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.h"
#include "base/format.h"
#include "base/suggest.h"
#include "train/config/config.h"
#include "train/config/config_fields.h"

namespace onestep::train {
namespace {

using nlohmann::ordered_json;

// Bounds as whole numbers where the type is one.
template <class T>
void add_range(ordered_json& schema, const Field& field) {
  if (!std::isinf(field.low)) schema["minimum"] = static_cast<T>(field.low);
  if (!std::isinf(field.high)) schema[field.below_high ? "exclusiveMaximum" : "maximum"] = static_cast<T>(field.high);
}

struct TypeSchema {
  const Field& field;
  ordered_json number(const char* type) const {
    ordered_json schema{{"type", type}};
    type == std::string("integer") ? add_range<int64_t>(schema, field) : add_range<double>(schema, field);
    return schema;
  }
  ordered_json operator()(const bool*) const { return {{"type", "boolean"}}; }
  ordered_json operator()(const int64_t*) const { return number("integer"); }
  ordered_json operator()(const double*) const { return number("number"); }
  ordered_json operator()(const std::string*) const { return {{"type", "string"}, {"minLength", 1}}; }
  ordered_json operator()(const Choice& /*choice*/) const { return {{"enum", field.choices}}; }
  ordered_json operator()(const std::array<double, 2>*) const {
    return {{"type", "array"}, {"items", number("number")}, {"minItems", 2}, {"maxItems", 2}};
  }
  ordered_json operator()(const std::vector<int64_t>*) const {
    return {{"type", "array"}, {"items", number("integer")}, {"minItems", 1}};
  }
  ordered_json operator()(const std::vector<std::string>*) const {
    return {{"type", "array"}, {"items", {{"type", "string"}, {"minLength", 1}}}, {"minItems", 1}};
  }
};

ordered_json field_schema(const Field& field) {
  ordered_json schema = std::visit(TypeSchema{field}, default_value(field));
  if (field.required.empty() && !field.optional && field.derived.empty()) {
    schema["default"] = ordered_json::parse(default_json(field));
  }
  const bool more_to_say = !schema.contains("default") || !field.defaults.empty();
  schema["description"] = field.doc + (more_to_say ? " (default: " + default_words(field) + ")" : "");
  return schema;
}

// Holds where one of the conditions does; they speak of keys of the same section, which must apply themselves.
ordered_json condition(const std::vector<When>& conditions) {
  ordered_json any = ordered_json::array();
  for (const When& when : conditions) {
    const Field& selector = *find_field(when.path);
    const std::string_view standard = chosen(default_value(selector));
    ordered_json one{{"properties", {{selector.key(), {{"enum", when.values}}}}}};
    const bool by_default =
        selector.required.empty() && std::find(when.values.begin(), when.values.end(), standard) != when.values.end();
    if (!by_default) one["required"] = {selector.key()};
    if (!selector.when.empty()) one["allOf"] = ordered_json::array({condition(selector.when)});  // a list, for clang, too
    any.push_back(std::move(one));
  }
  return {{"anyOf", std::move(any)}};
}

ordered_json object_schema() { return {{"type", "object"}, {"properties", ordered_json::object()}}; }

// Comments are allowed in every object, and nothing that the table does not know.
void close_object(ordered_json& schema) {
  schema["patternProperties"] = {{"^(//|\\$schema$)", true}};
  schema["additionalProperties"] = false;
}

ordered_json section_schema(const std::string& section) {
  ordered_json schema = object_schema(), rules = ordered_json::array();
  for (const Field& field : config_fields()) {
    if (field.section() != section) continue;
    schema["properties"][field.key()] = field_schema(field);
    if (!field.when.empty()) {
      const ordered_json elsewhere =
          field.neutral.empty() ? ordered_json(false) : ordered_json{{"const", ordered_json::parse(field.neutral)}};
      rules.push_back({{"if", condition(field.when)}, {"else", {{"properties", {{field.key(), elsewhere}}}}}});
    }
    if (!field.beside.empty()) schema["dependentRequired"][field.key()] = {find_field(field.beside)->key()};
    if (!field.required.empty() && holds(field.required, Config())) {
      schema["required"].push_back(field.key());
    } else if (!field.required.empty()) {
      rules.push_back({{"if", condition(field.required)}, {"then", {{"required", {field.key()}}}}});
    }
  }
  for (const std::string& within : config_sections())
    if (parent_section(within) == section) schema["properties"][within.substr(section.size() + 1)] = section_schema(within);
  close_object(schema);
  if (!rules.empty()) schema["allOf"] = std::move(rules);
  return schema;
}

std::string applies_to(const Field& field) {
  if (!field.beside.empty()) return field.beside;
  if (field.when.empty()) return "";
  return describe(field.when) + (field.neutral.empty() ? "" : "; elsewhere " + field.neutral);
}

}  // namespace

std::string schema_json() {
  ordered_json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                      {"title", "onestep config"},
                      {"description", "One training run. Keys that start with // are comments."}};
  schema.update(object_schema());
  for (const Field& field : config_fields()) {
    if (field.section().empty()) schema["properties"][field.key()] = field_schema(field);
  }
  for (const std::string& section : config_sections()) {
    if (!parent_section(section).empty()) continue;
    schema["properties"][section] = section_schema(section);
    if (schema["properties"][section].contains("required")) schema["required"].push_back(section);
  }
  close_object(schema);
  return schema.dump(2) + "\n";
}

std::string config_help(const std::string& part) {
  std::string out = "Keys of the config file (on the command line: --set section.key=value)\n";
  bool found = false;
  std::vector<std::string> known = config_sections();
  for (const Field& field : config_fields()) {
    known.push_back(field.path);
    if (!part.empty() && !field.path.starts_with(part + '.') && part != field.path) continue;
    found = true;
    out += "\n" + field.path + ": " + expected(field);
    out += (default_words(field).starts_with("required") ? "; " : "; default: ") + default_words(field) + "\n";
    if (!applies_to(field).empty()) out += "    only for " + applies_to(field) + "\n";
    out += "    " + field.doc + (field.may_change ? " (may change on resume)" : "") + "\n";
  }
  const std::string meant = nearest(part, known);
  ONESTEP_CHECK(ConfigError, found, "help: the config has no section or key ", part,
                did_you_mean(meant, " (sections: " + join(config_sections(), ", ") + ")"));
  return out;
}

std::string config_keys() {
  constexpr size_t kColumns = 80;
  std::string out, line, open_section;
  for (const Field& field : config_fields()) {
    const bool begins = field.section() != open_section;
    if (begins || line.size() + 1 + field.key().size() > kColumns) {
      out += line + '\n';
      line = begins ? field.section() + ':' : "   ";
    }
    open_section = field.section();
    line += (line.empty() ? "" : " ") + field.key();
  }
  return out + line + '\n';
}

std::string config_markdown() {
  std::string out =
      "# Config keys\n\nMade from the table in `train/config/config_fields.cpp` by `onestep schema --markdown`. A run is one "
      "JSON "
      "file; "
      "`--set section.key=value` wins over it\n(null removes a key). Keys that start with `//` and `$schema` are comments. An "
      "unknown or duplicate key, a wrong type, a value out of\nrange and a key of another kind are refused; where --set "
      "chooses a kind, the keys that the file has for its former kind are left out.\n";
  std::string open_section = "-";
  for (const Field& field : config_fields()) {
    if (field.section() != open_section) {
      open_section = field.section();
      out += "\n## " + (open_section.empty() ? "top level" : "`" + open_section + "`") + "\n\n";
      out += "| key | value | default | only for | meaning |\n| --- | --- | --- | --- | --- |\n";
    }
    out += "| `" + field.key() + "` | " + expected(field) + " | " + default_words(field) + " | " + applies_to(field) + " | " +
           field.doc + (field.may_change ? "; may change on resume" : "") + " |\n";
  }
  return out;
}

}  // namespace onestep::train
