#pragma once
// Malicious files, each with the place that its error must name.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/process.h"
#include "tests/support.h"
#include "tests/train/memory_limit.h"

namespace onestep::testing {

/// A file that must be refused.
struct Hostile {
  std::string bytes;
  std::string message;  ///< After the file's name; as in expect_refusal().
};

/// Compares the error for the file at `path` with its message. It is short however long the file is.
inline void expect_refusal(const std::string& refusal, const std::string& path, const Hostile& file) {
  expect_refusal(refusal, path + file.message);
  CHECK(refusal.size() < path.size() + 500);
}

/// Wants `read(path)` to refuse each file with IoError, in little more memory than the file is long.
template <class Read>
void expect_refused(const std::vector<Hostile>& files, const Read& read) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "hostile").string();
  for (const Hostile& file : files) {
    write(path, file.bytes);
    const MemoryLimit limit(memory_for(file.bytes.size()));
    CAPTURE(file.bytes.substr(0, 300));
    expect_refusal(refusal<IoError>([&] { read(path); }), path, file);
  }
}

/// `text` with its first `from` replaced by `to`.
inline std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("nothing to replace: " + from);
  return text.substr(0, at).append(to).append(text, at + from.size());  // GCC 12 warns wrongly about string::replace
}

/// Invalid JSON texts for any reader of JSON. tests/train/config/bad_json_test.cpp pins the sentences.
inline std::vector<Hostile> hostile_json() {
  return {
      {"{", ":1:2: "},
      {"{}}", ":1:3: "},
      {"{} {}", ":1:4: "},
      {"{\"a\"}", ":1:5: "},
      {"{\"a\":}", ":1:6: "},
      {"{\"a\":1,}", ":1:8: "},
      {"{\"a\":[1,]}", ":1:9: "},
      {"{\"a\":[}", ":1:7: "},
      {"{a:1}", ":1:2: "},
      {"{\"a\":NaN}", ":1:6: "},
      {"{\"a\":-Infinity}", ":1:7: "},
      {"{\"a\":1e999}", ":1:10: "},
      {"{\"a\":-1e999}", ":1:11: "},
      {"{\"a\":0x10}", ":1:7: "},
      {"{\"a\":\"\x01\"}", ":1:7: "},
      {"{\"a\":\"\\ud800\"}", ":1:13: "},
      {"{\"\xff\":1}", ":1:3: "},
      {"{\"\xc0\xaf\":1}", ":1:3: "},
      {"{\"\xed\xa0\x80\":1}", ":1:3: "},
      {"{\"\xf4\x90\x80\x80\":1}", ":1:3: "},
      {std::string("{}\0", 3), ":1:3: "},
      {std::string("{\"\0\":1}", 7), ":1:3: "},
      {"{\"a\":1,\"a\":2}", ": /a: "},
      {"{\"a\":{\"b\":1,\"b\":1}}", ": /a/b: "},
      {"{\"a\":[0,{\"~/\":1,\"~/\":1}]}", ": /a/1/~0~1: "},
      {"{\"a\":1,\"\\u0061\":2}", ": /a: "},
      {"{\"a\":" + std::string(100000, '['), ": "},
      {[] {
         std::string deep;
         for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
         return deep;
       }(),
       ": "},
  };
}

}  // namespace onestep::testing
