// JSON from untrusted files: where each refusal says that the text is wrong.
#include "base/json_reader.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "tests/process.h"
#include "tests/support.h"

using namespace onestep;
using onestep::testing::refusal;

namespace {

/// What parse_json says of the text, called x.json.
std::string refused(const std::string& text, size_t max_memory = kMaxJsonMemory) {
  return refusal<IoError>([&] { parse_json<IoError>(text, "x.json", max_memory); });
}

}  // namespace

TEST_CASE("json reader: values of all types come back") {
  const auto value =
      parse_json<IoError>(R"({"a": [1, -2, 1.5, 1e3], "b": {"c": "é\n", "d": [true, false, null]}, "": {}})", "x");
  CHECK(value["a"] == nlohmann::json({1, -2, 1.5, 1000.0}));
  CHECK(value["b"]["c"] == "é\n");
  CHECK(value["b"]["d"] == nlohmann::json({true, false, nullptr}));
  CHECK(value[""].empty());
  CHECK(parse_json<IoError>("9223372036854775807", "x").get<int64_t>() == INT64_MAX);
  CHECK(parse_json<IoError>(" \"text\" ", "x") == "text");
}

TEST_CASE("json reader: the error is of the type that was asked for") {
  CHECK_THROWS_AS(parse_json<IoError>("{", "x"), IoError);
  CHECK_THROWS_AS(parse_json<ConfigError>("{", "x"), ConfigError);
}

TEST_CASE("json reader: a mistake in the text is at its line and column") {
  CHECK(refused("") == "x.json:1:1: not JSON: unexpected end of input; expected '[', '{', or a literal");
  CHECK(refused("{\n  \"a\": 1,\n  \"b\": }\n").starts_with("x.json:3:8: not JSON: "));
  CHECK(refused("{\"é\": 1,}").starts_with("x.json:1:9: not JSON: "));  // columns count characters
  CHECK(refused("1 2").starts_with("x.json:1:3: not JSON: "));
  CHECK(refused("[NaN]") == "x.json:1:2: NaN and Infinity are not numbers in JSON");
  CHECK(refused("[1, -inf]").ends_with(": NaN and Infinity are not numbers in JSON"));
  CHECK(refused("[1e999]") == "x.json:1:6: a number too large for a double");
}

TEST_CASE("json reader: bytes that are no text are refused where they stand") {
  CHECK(refused("{\"a\":\n \"\xff\"}") == "x.json:2:3: not UTF-8: \"\\xff\"");
  CHECK(refused("[\"\xed\xa0\x80\"]").starts_with("x.json:1:3: not UTF-8: "));  // a surrogate
  CHECK(refused(std::string("[1]\0[2]", 7)) == "x.json:1:4: holds a NUL byte");
}

TEST_CASE("json reader: a key twice in one object is refused by its pointer and may be in two objects") {
  CHECK(refused(R"({"a": 1, "a": 1})") == "x.json: /a: duplicate key");
  CHECK(refused(R"({"list": [{}, {"x/y": {"b~": 1, "b~": 2}}]})") == "x.json: /list/1/x~1y/b~0: duplicate key");
  CHECK(refused(R"([{"a": 1}, {"a": {"a": 1}}])").empty());
}

TEST_CASE("json reader: depth and memory have limits") {
  const auto nested = [](int depth) {
    const auto levels = static_cast<size_t>(depth);
    return std::string(levels, '[') + std::string(levels, ']');
  };
  CHECK(refused(nested(kMaxJsonDepth)).empty());
  CHECK(refused(nested(kMaxJsonDepth + 1)) == "x.json: nested more than 64 levels deep");
  std::string list = "[0";
  for (int i = 0; i < 1000; ++i) list += ",0";
  CHECK(refused(list + "]").empty());
  CHECK(refused(list + "]", 1 << 14) == "x.json: too many values: they would take more than 16 KiB of memory");
  const std::string text(1 << 14, 'a');
  CHECK(json_string_memory(text) > text.size());
  CHECK(refused('"' + text + '"', 1 << 14).starts_with("x.json: too many values: "));
}

TEST_CASE("json reader: a file is read whole and refused by its name") {
  const testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "file.json").string();
  CHECK_THROWS_AS(read_json<ConfigError>(path, 100), IoError);  // is not there
  testing::write(path, "[1, 2]\n");
  CHECK(read_json<ConfigError>(path, 100) == nlohmann::json({1, 2}));
  CHECK_THROWS_AS(read_json<ConfigError>(path, 3), IoError);  // too long
  testing::write(path, "");
  CHECK(refusal<ConfigError>([&] { read_json<ConfigError>(path, 100); }) == path + ": is empty");
  testing::write(path, "[1, ]");
  CHECK(refusal<ConfigError>([&] { read_json<ConfigError>(path, 100); }).starts_with(path + ":1:5: not JSON: "));
}

TEST_CASE("json reader: pointers are escaped and values cut for messages") {
  CHECK(json_pointer("", "a") == "/a");
  CHECK(json_pointer("/model", "a/b~c") == "/model/a~1b~0c");
  CHECK(json_pointer("", "\x1b[2J") == "/\\u001b[2J");  // does nothing to a terminal
  CHECK(brief(nlohmann::json::parse(R"({"a": [1, "é"]})")) == R"({"a":[1,"\u00e9"]})");
  CHECK(brief("text") == "\"text\"");
  const std::string cut = brief(nlohmann::json(std::vector<int>(100, 7)));
  CHECK(cut.size() == 63);
  CHECK(cut.ends_with("..."));
}
