#pragma once
// Files that somebody made to do harm, each with the sentence that refuses it.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/process.h"
#include "tests/support.h"
#include "tests/train/memory_limit.h"

namespace onestep::testing {

/// The bytes of a file and what its refusal says after the file's name.
struct Hostile {
  std::string bytes, message;
};

/// Wants `read(path)` to refuse each file with IoError and its message, in little more memory than the file is long.
template <class Read>
void expect_refused(const std::vector<Hostile>& files, const Read& read) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "hostile").string();
  for (const Hostile& file : files) {
    write(path, file.bytes);
    const MemoryLimit limit(memory_for(file.bytes.size()));
    CAPTURE(file.bytes.substr(0, 300));
    CHECK(refusal<IoError>([&] { read(path); }) == path + file.message);
  }
}

/// `text` with its first `from` replaced by `to`.
inline std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("nothing to replace: " + from);
  return text.substr(0, at).append(to).append(text, at + from.size());  // GCC 12 warns wrongly about string::replace
}

/// What is wrong with a text that should be JSON, whatever it should hold: {text, what is said after the file's name}.
inline std::vector<Hostile> hostile_json() {
  return {
      {"{", ":1:2: not JSON: unexpected end of input; expected string literal"},
      {"{}}", ":1:3: not JSON: unexpected '}'; expected end of input"},
      {"{} {}", ":1:4: not JSON: unexpected '{'; expected end of input"},
      {"{\"a\"}", ":1:5: not JSON: unexpected '}'; expected ':'"},
      {"{\"a\":}", ":1:6: not JSON: unexpected '}'; expected '[', '{', or a literal"},
      {"{\"a\":1,}", ":1:8: not JSON: unexpected '}'; expected string literal"},
      {"{\"a\":[1,]}", ":1:9: not JSON: unexpected ']'; expected '[', '{', or a literal"},
      {"{\"a\":[}", ":1:7: not JSON: unexpected '}'; expected '[', '{', or a literal"},
      {"{a:1}", ":1:2: not JSON: invalid literal; expected string literal"},
      {"{\"a\":NaN}", ":1:6: NaN and Infinity are not numbers in JSON"},
      {"{\"a\":-Infinity}", ":1:7: NaN and Infinity are not numbers in JSON"},
      {"{\"a\":1e999}", ":1:10: a number too large for a double"},
      {"{\"a\":-1e999}", ":1:11: a number too large for a double"},
      {"{\"a\":0x10}", ":1:7: not JSON: invalid literal; expected '}'"},
      {"{\"a\":\"\x01\"}", ":1:7: not JSON: invalid string: control character U+0001 (SOH) must be escaped to \\u0001"},
      {"{\"a\":\"\\ud800\"}", ":1:13: not JSON: invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF"},
      {"{\"\xff\":1}", ":1:3: not UTF-8: \"\\xff\""},
      {"{\"\xc0\xaf\":1}", ":1:3: not UTF-8: \"\\xc0\""},
      {"{\"\xed\xa0\x80\":1}", ":1:3: not UTF-8: \"\\xed\""},
      {"{\"\xf4\x90\x80\x80\":1}", ":1:3: not UTF-8: \"\\xf4\""},
      {std::string("{}\0", 3), ":1:3: holds a NUL byte"},
      {std::string("{\"\0\":1}", 7), ":1:3: holds a NUL byte"},
      {"{\"a\":1,\"a\":2}", ": /a: duplicate key"},
      {"{\"a\":{\"b\":1,\"b\":1}}", ": /a/b: duplicate key"},
      {"{\"a\":[0,{\"~/\":1,\"~/\":1}]}", ": /a/1/~0~1: duplicate key"},
      {"{\"a\":1,\"\\u0061\":2}", ": /a: duplicate key"},
      {"{\"a\":" + std::string(100000, '['), ": nested more than 64 levels deep"},
      {[] {
         std::string deep;
         for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
         return deep;
       }(),
       ": nested more than 64 levels deep"},
  };
}

}  // namespace onestep::testing
