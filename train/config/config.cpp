#include "train/config/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/json_reader.h"
#include "base/read_file.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "train/config/config_fields.h"

namespace onestep::train {
namespace {

using nlohmann::json;

bool is_comment(const std::string& key) { return key.starts_with("//") || key == "$schema"; }

// Merges `value` into `target` as --set says, noting for every value set where it came from.
void merge(json& target, json value, const std::string& pointer, const std::string& argument, ConfigOrigin& origin) {
  if (!value.is_object()) {
    target = std::move(value);
    origin.sets[pointer] = argument;
    return;
  }
  ONESTEP_CHECK(ConfigError, target.is_object() || target.is_null(), argument, ": ", pointer, " is not an object");
  if (target.is_null()) target = json::object();
  for (const auto& [key, member] : value.items()) {
    if (member.is_null()) {
      target.erase(key);
    } else {
      merge(target[key], member, json_pointer(pointer, key), argument, origin);
    }
  }
}

// The value of `a.b=value`: JSON if it is, else (and wherever the key takes a string) the text as it stands. A section
// has no string value: text that begins as an object and is none is a mistake in it.
json set_value(const std::string& path, const std::string& text, const std::string& argument) {
  const Field* field = find_field(path);
  const bool takes_text = field != nullptr && (std::holds_alternative<std::string*>(default_value(*field)) ||
                                               std::holds_alternative<Choice>(default_value(*field)));
  json value;
  try {
    value = parse_json<ConfigError>(text, argument);
  } catch (const ConfigError&) {
    if (field == nullptr && text.starts_with('{')) throw;
    value = text;
  }
  return takes_text && !value.is_string() && !value.is_null() ? json(text) : value;
}

void apply_set(json& root, const std::string& set, ConfigOrigin& origin) {
  const size_t equals = set.find('=');
  const std::string argument = "--set " + printable(set);
  ONESTEP_CHECK(ConfigError, find_invalid_utf8(set) == std::string::npos, argument, ": not UTF-8");
  ONESTEP_CHECK(ConfigError, equals != std::string::npos, argument, ": has no = (write --set section.key=value)");
  const std::string path = set.substr(0, equals);

  // {"a": {"b": value}}, built from the inside.
  json value = set_value(path, set.substr(equals + 1), argument);
  size_t end = path.size(), levels = 0;
  while (true) {
    const size_t dot = end == 0 ? std::string::npos : path.rfind('.', end - 1);
    const size_t begin = dot == std::string::npos ? 0 : dot + 1;
    ONESTEP_CHECK(ConfigError, begin < end, argument, ": part of the key is empty (write --set section.key=value)");
    ONESTEP_CHECK(ConfigError, ++levels <= kMaxJsonDepth, argument, ": no key is that deep (write --set section.key=value)");
    value = json::object({{path.substr(begin, end - begin), std::move(value)}});
    if (dot == std::string::npos) break;
    end = dot;
  }
  merge(root, std::move(value), "", argument, origin);
}

std::vector<std::string> known_keys(const std::string& section) {
  std::vector<std::string> keys;
  for (const Field& field : config_fields()) {
    if (field.section() == section) keys.push_back(field.key());
  }
  for (const std::string& within : config_sections())
    if (parent_section(within) == section) keys.push_back(within.substr(within.rfind('.') + 1));
  return keys;
}

[[noreturn]] void fail_unknown(const std::string& section, const std::string& key, const ConfigOrigin& origin) {
  const std::string pointer = json_pointer(section_pointer(section), key);
  const std::vector<std::string> known = known_keys(section);
  const bool set = origin.at(pointer).starts_with("--set ");  // which separates names by dots
  std::string hint = nearest(key, known);
  if (!hint.empty() && set && !section.empty()) hint = section + '.' + hint;
  for (const Field& field : config_fields()) {
    if (hint.empty() && field.key() == key) hint = set ? field.path : field.pointer();
  }
  fail<ConfigError>(origin.at(pointer), ": unknown key", did_you_mean(hint, " (known here: " + join(known, ", ") + ")"));
}

void check_keys(const json& root, const ConfigOrigin& origin) {
  ONESTEP_CHECK(ConfigError, root.is_object(), origin.file, ": must be an object: got ", brief(root));
  const auto check_members = [&origin](const json& object, const std::string& section) {
    const std::vector<std::string> keys = known_keys(section);
    for (const auto& [key, value] : object.items()) {
      if (!is_comment(key) && std::find(keys.begin(), keys.end(), key) == keys.end()) fail_unknown(section, key, origin);
    }
  };
  check_members(root, "");
  for (const std::string& section : config_sections()) {
    const json::json_pointer place(section_pointer(section));
    if (!root.contains(place)) continue;
    ONESTEP_CHECK(ConfigError, root[place].is_object(), origin.at(section_pointer(section)), ": must be an object: got ",
                  brief(root[place]));
    check_members(root[place], section);
  }
}

// Stores one JSON value in a field, or says what it must be.
struct ReadValue {
  const Field& field;
  const json& value;
  const ConfigOrigin& origin;

  [[noreturn]] void refuse(const std::string& pointer, const std::string& must_be, const json& got) const {
    std::string hint;
    if (got.is_string() && !field.choices.empty()) hint = nearest(got.get<std::string>(), field.choices);
    fail<ConfigError>(origin.at(pointer), ": must be ", must_be, ": got ", brief(got), did_you_mean(hint));
  }

  bool in_range(double number) const {
    return number >= field.low && (field.below_high ? number < field.high : number <= field.high);
  }
  static bool read(const json& from, bool& out) { return from.is_boolean() && (out = from.get<bool>(), true); }
  bool read(const json& from, double& out) const { return from.is_number() && in_range(out = from.get<double>()); }
  bool read(const json& from, int64_t& out) const {
    if (from.is_number_float()) {  // 1e6 is as whole as 1000000
      const double number = from.get<double>();
      if (number != std::floor(number) || std::abs(number) >= 0x1p53) return false;  // 2^53 may have been 2^53 + 1
      out = static_cast<int64_t>(number);
    } else if (from.is_number_integer()) {
      if (from.is_number_unsigned() && from.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return false;
      out = from.get<int64_t>();
    } else {
      return false;
    }
    return in_range(static_cast<double>(out));
  }
  static bool read(const json& from, std::string& out) { return from.is_string() && !(out = from.get<std::string>()).empty(); }
  bool read(const json& from, const Choice& out) const {
    std::string name;
    if (!read(from, name) || std::find(field.choices.begin(), field.choices.end(), name) == field.choices.end()) return false;
    *out.value = static_cast<unsigned char>(std::find(out.names.begin(), out.names.end(), name) - out.names.begin());
    return true;
  }
  template <class T>
  bool read(const json& from, std::vector<T>& out) const {
    if (!from.is_array() || from.empty()) return false;
    out.resize(from.size());
    for (size_t i = 0; i < out.size(); ++i) read_item(from, i, out[i]);
    return true;
  }
  bool read(const json& from, std::array<double, 2>& out) const {
    if (!from.is_array() || from.size() != out.size()) return false;
    for (size_t i = 0; i < out.size(); ++i) read_item(from, i, out[i]);
    return true;
  }
  template <class T>
  void read_item(const json& list, size_t i, T& out) const {
    if (!read(list[i], out)) refuse(field.pointer() + "/" + std::to_string(i), expected_item(field), list[i]);
  }

  void operator()(auto* out) const {
    if (!read(value, *out)) refuse(field.pointer(), expected(field), value);
  }
  void operator()(const Choice& out) const {
    if (!read(value, out)) refuse(field.pointer(), expected(field), value);
  }
};

// The member for `field`, or nullptr.
const json* member(const json& root, const Field& field) {
  const json::json_pointer place(field.pointer());
  return root.contains(place) ? &root[place] : nullptr;
}

// A key of another kind is left out if it says what every other kind does anyway (0 dropout), or if it is in the file and
// --set asked for another kind; else it is refused.
void check_left_out(const Field& field, const json& value, const Config& config) {
  ONESTEP_CHECK(ConfigError, field.beside.empty() || !holds(field.when, config), config.origin.at(field.pointer()), ": needs ",
                field.beside);
  std::string actual;
  bool kind_was_set = false;
  for (const When& when : field.when) {
    const Field* selector = find_field(when.path);
    while (!holds(selector->when, config)) selector = find_field(selector->when.front().path);
    kind_was_set = kind_was_set || config.origin.sets.contains(selector->pointer());
    const std::string choice = selector->path + " = " + std::string(chosen(value_of(*selector, config)));
    if (actual.find(choice) == std::string::npos) actual += (actual.empty() ? "" : " and ") + choice;
  }
  const bool neutral = !field.neutral.empty() && value == parse_json<ConfigError>(field.neutral, field.path);
  const bool from_file = config.origin.at(field.pointer()).starts_with(config.origin.file + ": ");
  ONESTEP_CHECK(ConfigError, neutral || (kind_was_set && from_file), config.origin.at(field.pointer()), ": does not apply to ",
                actual, " (only to ", describe(field.when), ")");
}

[[noreturn]] void fail_missing(const Field& field, const Config& config) {
  const bool always = field.required[0].path == field.path;
  fail<ConfigError>(config.origin.at(field.pointer()), ": missing: must be ", expected(field),
                    always ? "" : " (needed for " + describe(field.required) + ")");
}

void read_fields(const json& root, Config& config) {
  for (const Field& field : config_fields()) {
    const json* value = member(root, field);
    const bool needed = applies(field, config);
    if (value != nullptr && !needed) {
      check_left_out(field, *value, config);
    } else if (value != nullptr) {
      std::visit(ReadValue{field, *value, config.origin}, field.value(config));
      config.origin.given.insert(field.path);
    } else if (needed && !field.required.empty() && holds(field.required, config)) {
      fail_missing(field, config);
    }
  }
}

double default_of_kind(const Field& field, const Config& config) {
  const std::string_view kind = chosen(value_of(*find_field(field.section() + ".kind"), config));
  for (const auto& [name, number] : field.defaults)
    if (name == kind) return number;
  return *field.usual;
}

/// Fills in what was not given and comes from other fields.
void derive(Config& config) {
  for (const Field& field : config_fields()) {
    if (!is_untouched(field, config)) continue;
    const bool needed = applies(field, config);
    if (field.usual) *std::get<double*>(field.value(config)) = default_of_kind(field, config);
    if (needed && field.derive) field.derive(config);
    if (!needed && !field.neutral.empty()) {
      const json neutral = parse_json<ConfigError>(field.neutral, field.path);
      std::visit(ReadValue{field, neutral, config.origin}, field.value(config));
    }
  }
}

}  // namespace

std::string ConfigOrigin::at(const std::string& pointer) const {
  for (std::string place = pointer;; place.resize(place.rfind('/'))) {
    const auto found = sets.find(place);
    if (found != sets.end()) return found->second + ": " + pointer;
    if (place.empty()) break;
  }
  const auto inside = sets.lower_bound(pointer + "/");
  const bool set_inside = inside != sets.end() && inside->first.starts_with(pointer + "/");
  return (set_inside ? inside->second : file) + ": " + pointer;
}

bool operator==(const Config& a, const Config& b) {
  return a.seed == b.seed && a.model == b.model && a.data == b.data && a.optimizer == b.optimizer && a.schedule == b.schedule &&
         a.train == b.train && a.distributed == b.distributed;
}

Config parse_config(const std::string& text, const std::string& source, const std::vector<std::string>& sets) {
  Config config;
  config.origin.file = source;
  json root = parse_json<ConfigError>(text, source);
  ONESTEP_CHECK(ConfigError, root.is_object(), source, ": must be an object: got ", brief(root));
  for (const std::string& set : sets) apply_set(root, set, config.origin);
  check_keys(root, config.origin);
  read_fields(root, config);
  derive(config);
  check_between_fields(config);
  return config;
}

Config resolve(Config config) {
  derive(config);
  const Config read = parse_config(resolved_json(config), config.origin.file);
  for (const Field& field : config_fields()) {
    ONESTEP_CHECK(ConfigError, to_json(value_of(field, read)) == to_json(value_of(field, config)),
                  config.origin.at(field.pointer()), ": does not apply: got ", to_json(value_of(field, config)), " (only to ",
                  describe(field.when), ")");
  }
  return config;
}

Config load_config(const std::string& path, const std::vector<std::string>& sets) {
  const std::string text = read_file(path, kMaxJsonBytes);
  ONESTEP_CHECK(ConfigError, !text.empty(), path, ": is empty");
  Config config = parse_config(text, path, sets);
  const auto written = static_cast<int64_t>(resolved_json(config).size());  // by a run, which has to read it back
  ONESTEP_CHECK(ConfigError, written <= kMaxJsonBytes, path, ": too large: ", written,
                " bytes with --set and every default written out, at most ", format_bytes(kMaxJsonBytes), " are read");
  return config;
}

std::string resolved_json(const Config& config) {
  std::string out = "{", open, indent = "  ";
  const char* separator = "\n";
  // Closes the sections that do not hold this one, and opens it.
  const auto open_section = [&](const std::string& section) {
    while (!open.empty() && section != open && !section.starts_with(open + '.')) {
      indent.resize(indent.size() - 2);
      out += "\n" + indent + "}";
      separator = ",\n";
      open = parent_section(open);
    }
    if (section == open) return;
    out += separator + indent + "\"" + section.substr(section.rfind('.') + 1) + "\": {";
    separator = "\n";
    indent += "  ";
    open = section;
  };
  for (const Field& field : config_fields()) {
    const auto given = value_of(field, config);
    std::string value = to_json(given);
    if (std::holds_alternative<std::vector<int64_t>*>(given))
      std::erase(value, ' ');  // with a space a token the file might be too large to be read back
    const bool absent = field.optional && (value == "[]" || value == "\"\"" || value == "0");
    if (absent || !applies(field, config)) continue;
    open_section(field.section());
    out += separator + indent + "\"" + field.key() + "\": " + value;
    separator = ",\n";
  }
  open_section("");
  return out + "\n}\n";
}

void check_resumable(const Config& started, const Config& now) {
  for (const Field& field : config_fields()) {
    if (field.may_change || !(applies(field, started) || applies(field, now))) continue;
    const std::string before = to_json(value_of(field, started)), after = to_json(value_of(field, now));
    ONESTEP_CHECK(ConfigError, before == after, now.origin.at(field.pointer()),
                  ": cannot change when a run continues: it was started with ", before, ", got ", after,
                  " (give the run another folder to start again)");
  }
}

std::map<std::string, std::string> fixed_values(const Config& config) {
  constexpr size_t kLongest = 64;
  std::map<std::string, std::string> values;
  for (const Field& field : config_fields()) {
    if (field.may_change || !applies(field, config)) continue;
    const std::string value = to_json(value_of(field, config));
    values[field.path] = value.size() <= kLongest ? value : "xxh3_128 " + hash_of(value);
  }
  return values;
}

void check_trained_with(const std::map<std::string, std::string>& values, const Config& config, const std::string& section) {
  const auto now = fixed_values(config);
  for (const Field& field : config_fields()) {
    const auto before = values.find(field.path), after = now.find(field.path);
    if (before == values.end() || after == now.end() || (!section.empty() && field.section() != section)) continue;
    ONESTEP_CHECK(ConfigError, before->second == after->second, config.origin.at(field.pointer()), ": is ", after->second,
                  ", the checkpoint was trained with ", before->second, " (put it back, or train a new run)");
  }
}

}  // namespace onestep::train
