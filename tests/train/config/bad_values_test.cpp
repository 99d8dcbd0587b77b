// Every key of a config with every kind of value that it must not have, each with its whole message.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/train/config/config_refusal.h"
#include "train/config/config.h"
#include "train/config/config_fields.h"

using namespace onestep::train;
using nlohmann::json;
using onestep::testing::config_refusal;
using onestep::testing::contains;

namespace {

/// What the keys that choose a kind need beside them.
json data_of(const std::string& kind) {
  if (kind == "tokens") return {{"kind", kind}, {"tokens", {0, 1, 0, 1}}, {"vocab_size", 2}, {"val_fraction", 0}};
  if (kind == "text") return {{"kind", kind}, {"text", "abc"}};
  if (kind == "instructions" || kind == "classification") return {{"kind", kind}, {"path", "examples.jsonl"}};
  if (kind == "none") return {{"kind", kind}};
  return {{"kind", "task"}, {"task", "copy"}};
}

json& member(json& root, const std::string& path) { return root[json::json_pointer(section_pointer(path))]; }

/// Makes the field apply, and before that the one that it depends on.
void fulfil(json& root, const std::vector<When>& conditions) {
  if (conditions.empty()) return;
  const When& when = conditions.front();
  if (when.path == "data.kind") root["data"] = data_of(when.values.front());
  fulfil(root, find_field(when.path)->when);
  member(root, when.path) = when.values.front();
  if (when.path == "data.tokenizer") root["data"]["tokenizer_path"] = "folder";
}

/// A good config in which the field has the raw text `value`.
std::string with(const Field& field, const std::string& value) {
  json root{{"data", data_of("task")}, {"model", {{"context_length", 3}}}};
  fulfil(root, field.when);
  if (!field.beside.empty()) member(root, field.beside) = 1;
  member(root, field.path) = "@";
  const std::string text = root.dump();
  const size_t at = text.find("\"@\"");
  return text.substr(0, at).append(value).append(text, at + 3);
}

struct BadValue {
  std::string text, shown;
};

using BadValues = std::vector<BadValue>;

BadValues same(const std::vector<std::string>& texts) {
  BadValues values;
  for (const std::string& text : texts) values.push_back({text, text});
  return values;
}

/// Numbers just outside the field's range; `step` is the distance of two.
void add_outside(const Field& field, double step, BadValues& values) {
  const bool whole = step == 1;
  const auto add = [&](double number) {
    const std::string text = whole ? std::to_string(static_cast<int64_t>(number)) : json(number).dump();
    values.push_back({text, text});
  };
  if (std::isfinite(field.low)) add(field.low - step);
  if (std::isfinite(field.high)) add(field.below_high ? field.high : field.high + step);
}

/// Values of a wrong type or outside the range, by the type of the field.
struct WrongValues {
  const Field& field;

  BadValues operator()(const bool*) const { return same({"null", "0", "1", "0.5", "\"true\"", "\"\"", "[true]", "{}"}); }
  BadValues operator()(const int64_t*) const {
    BadValues values = same({"null", "true", "\"1\"", "\"\"", "[1]", "{}", "1.5", "18446744073709551615"});
    values.push_back({"1e300", "1e+300"});
    values.push_back({"-1e300", "-1e+300"});
    add_outside(field, 1, values);
    return values;
  }
  BadValues operator()(const double*) const {
    BadValues values = same({"null", "true", "\"1\"", "\"nan\"", "[1]", "{}"});
    add_outside(field, 0.5, values);
    return values;
  }
  BadValues operator()(const std::string*) const {
    BadValues values = same({"null", "true", "1", "0.5", "\"\"", "[]", "{}", "[\"a\"]"});
    if (!field.choices.empty()) values.push_back({"\"@@@@@@@@@@@@\"", "\"@@@@@@@@@@@@\""});
    return values;
  }
  BadValues operator()(const Choice&) const { return (*this)(static_cast<const std::string*>(nullptr)); }
  BadValues operator()(const std::array<double, 2>*) const {
    return same({"null", "true", "1", "\"0.9,0.99\"", "[]", "[0.5]", "[0.5,0.5,0.5]", "{}"});
  }
  BadValues operator()(const auto*) const { return same({"null", "true", "1", "\"1\"", "[]", "{}"}); }  // lists
};

/// Wrong items of a list whose other item is right.
struct WrongItems {
  BadValues operator()(const Choice&) const { return {}; }
  template <class T>
  BadValues operator()(const T*) const {
    if constexpr (std::is_same_v<T, std::vector<std::string>>) return same({"null", "true", "1", "\"\"", "[\"a\"]", "{}"});
    if constexpr (std::is_same_v<T, std::vector<int64_t>>) return same({"null", "true", "1.5", "-1", "\"1\"", "[1]", "{}"});
    if constexpr (std::is_same_v<T, std::array<double, 2>>)
      return same({"null", "true", "-0.5", "1.0", "\"0.5\"", "[0.5]", "{}"});
    return {};
  }
};

}  // namespace

TEST_CASE("bad values: every key refuses every wrong value with its pointer and what it must be") {
  int count = 0;
  for (const Field& field : config_fields()) {
    const FieldValue type = default_value(field);
    for (const BadValue& value : std::visit(WrongValues{field}, type)) {
      CAPTURE(with(field, value.text));
      CHECK(config_refusal(with(field, value.text)) ==
            "run.json: " + field.pointer() + ": must be " + expected(field) + ": got " + value.shown);
      ++count;
    }
    const std::string good = std::holds_alternative<std::vector<std::string>*>(type) ? "\"a\"" : "0";
    for (const BadValue& item : std::visit(WrongItems{}, type)) {
      const std::string text = with(field, "[" + good + "," + item.text + "]");
      CAPTURE(text);
      CHECK(config_refusal(text) ==
            "run.json: " + field.pointer() + "/1: must be " + expected_item(field) + ": got " + item.shown);
      ++count;
    }
  }
  CHECK(count > 450);
}

TEST_CASE("bad values: every key refuses numbers that are none and to be there twice") {
  for (const Field& field : config_fields()) {
    CAPTURE(field.path);
    for (const char* number : {"NaN", "-Infinity", "Infinity"})
      CHECK(contains(config_refusal(with(field, number)), "NaN and Infinity"));
    for (const char* number : {"1e999", "-1e999"}) CHECK(contains(config_refusal(with(field, number)), "too large"));
    const std::string twice = config_refusal(with(field, std::string("1,\"").append(field.key()).append("\":1")));
    CHECK(twice.starts_with("run.json: " + field.pointer() + ": duplicate "));
    const std::string unknown = config_refusal(with(field, "1,\"@@@@@@@@@@@@\":1"));
    CHECK(unknown.starts_with("run.json: " + section_pointer(field.section()) + "/@@@@@@@@@@@@: "));
  }
}
