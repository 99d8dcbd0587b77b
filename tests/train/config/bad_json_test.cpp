// Text that is not JSON, or JSON that no config may hold, and where each is wrong.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/train/config/config_refusal.h"

using namespace onestep::testing;

TEST_CASE("bad json: syntax and numbers") {
  expect_refused({
      {"", ":1:1: not JSON: unexpected end of input; expected '[', '{', or a literal"},
      {" ", ":1:2: "},
      {"{", ":1:2: "},
      {"[", ":1:2: "},
      {"nonsense", ":1:2: not JSON: invalid literal"},
      {R"({"seed": 1,})", ":1:12: "},
      {R"({"seed": 1 "model": {}})", ":1:18: "},
      {"{'seed': 1}", ":1:2: "},
      {R"({"seed": NaN})", ":1:10: NaN and Infinity are not numbers in JSON"},
      {R"({"seed": Infinity})", ":1:10: "},
      {R"({"optimizer": {"lr": -Infinity}})", ":1:23: "},
      {R"({"optimizer": {"lr": 1e999}})", ":1:26: a number too large for a double"},
      {R"({"optimizer": {"lr": -1e999}})", ":1:27: "},
      {R"({"seed": 01})", ":1:11: "},
      {R"({"seed": +1})", ":1:10: "},
      {R"({"seed": .5})", ":1:10: "},
      {R"({"seed": 1.})", ":1:12: "},
      {R"({"seed": 0x10})", ":1:11: "},
      {R"({"seed": True})", ":1:10: "},
      {R"({"data": {"path": "a\qb"}})", ":1:22: "},
      {R"({"data": {"path": "a)", ":1:21: not JSON: invalid string: missing closing quote"},
      {"{\"seed\": 1}\n{\"seed\": 2}", ":2:1: "},
      {R"({"seed": 1} // end)", ":1:13: "},
      {"{\n  \"seed\": 1,\n  \"data\": }\n", ":3:11: "},
      {R"({"data": {"text": "\ud800"}})", ":1:26: "},
  });
}

TEST_CASE("bad json: invalid UTF-8 and NUL bytes") {
  CHECK(config_refusal("{\"data\": {\"path\": \"a\xff\"}}") == "run.json:1:21: not UTF-8: \"\\xff\"");
  expect_refusal(config_refusal("{\"data\": {\"path\": \"\xc0\xaf\"}}"), "run.json:1:20: ");
  expect_refusal(config_refusal("{\n\xed\xa0\x80}"), "run.json:2:1: ");
  CHECK(config_refusal(std::string("{}\0{}", 5)) == "run.json:1:3: holds a NUL byte");
  CHECK(config_refusal("{" + kCopyTask + "}", {"data.path=\xff"}) == "--set data.path=\\xff: not UTF-8");
}

TEST_CASE("bad json: great depth and length are refused quickly") {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  CHECK(config_refusal(deep) == "run.json: nested more than 64 levels deep");
  expect_refusal(config_refusal(std::string(100000, '[')), "run.json: ");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  expect_refusal(config_refusal(objects), "run.json: ");
  std::string keys = "{\"model\": {\"a0\": 0";
  for (int i = 1; i < 50000; ++i) keys += ", \"a" + std::to_string(i) + "\": 0";
  CHECK(config_refusal(keys + "}}").starts_with("run.json: /model/a0: "));
  std::string path;
  for (int i = 0; i < 1000; ++i) path += "a.";
  CHECK(
      config_refusal("{" + kCopyTask + "}", {path + "b=1"}).ends_with(": no key is that deep (write --set section.key=value)"));
  const auto unknown_key = [](std::size_t length) {
    return config_refusal("{" + kCopyTask + ", \"model\": {\"" + std::string(length, 'd') + "\": 1}}");
  };
  CHECK(unknown_key(500000) == unknown_key(1000));
  CHECK(config_refusal("{" + kCopyTask + ", \"seed\": \"" + std::string(500000, '1') + "\"}").size() < 300);
}
